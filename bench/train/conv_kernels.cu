// The convolutional net's kernels. Compiled by nvcc for the program and by the host compiler for its test (launch.h).
#include <cmath>

#include "bench/train/conv_kernels.h"
#include "bench/train/launch.h"

namespace hotpack::train {
namespace {

constexpr int kStrip = 4;  // rows of a product that one thread computes

// Consecutive indices are consecutive channels of one pixel: reads and writes are coalesced.
HOTPACK_KERNEL_FUNCTION void Im2ColElement(int64_t i, const float* images, float* patches, int side, int channels,
                                           int kernel, int stride, int out_side) {
  const int channel = static_cast<int>(i % channels);
  int64_t rest = i / channels;
  const int kx = static_cast<int>(rest % kernel);
  rest /= kernel;
  const int ky = static_cast<int>(rest % kernel);
  rest /= kernel;
  const int out_x = static_cast<int>(rest % out_side);
  rest /= out_side;
  const int out_y = static_cast<int>(rest % out_side);
  const int64_t row = rest / out_side;
  const int x = out_x * stride + kx - kernel / 2, y = out_y * stride + ky - kernel / 2;
  const bool inside = x >= 0 && x < side && y >= 0 && y < side;
  patches[i] = inside ? images[((row * side + y) * side + x) * channels + channel] : 0.0f;
}

HOTPACK_KERNEL_FUNCTION void Col2ImElement(int64_t i, const float* patches, float* images, int side, int channels,
                                           int kernel, int stride, int out_side) {
  const int channel = static_cast<int>(i % channels);
  int64_t rest = i / channels;
  const int x = static_cast<int>(rest % side);
  rest /= side;
  const int y = static_cast<int>(rest % side);
  const int64_t row = rest / side;
  float sum = 0;
  for (int ky = 0; ky < kernel; ++ky) {
    const int from_y = y + kernel / 2 - ky, out_y = from_y / stride;
    if (from_y < 0 || from_y % stride != 0 || out_y >= out_side) continue;
    for (int kx = 0; kx < kernel; ++kx) {
      const int from_x = x + kernel / 2 - kx, out_x = from_x / stride;
      if (from_x < 0 || from_x % stride != 0 || out_x >= out_side) continue;
      const int64_t patch = (row * out_side + out_y) * out_side + out_x;
      sum += patches[((patch * kernel + ky) * kernel + kx) * channels + channel];
    }
  }
  images[i] = sum;
}

// Computes one column of up to kStrip rows of a product. Rows past `rows` repeat the last one: they are read, not
// written.
HOTPACK_KERNEL_FUNCTION void StripProduct(const float* a, int64_t a_row_step, int64_t a_step, const float* b,
                                          int64_t b_step, int64_t length, int64_t rows, float* out, int64_t out_step) {
  const float* row[kStrip];
  float sum[kStrip];
  for (int r = 0; r < kStrip; ++r) {
    row[r] = a + (r < rows ? r : rows - 1) * a_row_step;
    sum[r] = 0;
  }
  for (int64_t p = 0; p < length; ++p) {
    const float factor = b[p * b_step];
    for (int r = 0; r < kStrip; ++r) sum[r] += row[r][p * a_step] * factor;
  }
  for (int r = 0; r < kStrip && r < rows; ++r) out[r * out_step] = sum[r];
}

HOTPACK_KERNEL_FUNCTION void TallMatMulStrip(int64_t i, const float* a, const float* b, float* c, int64_t m, int n,
                                             int k) {
  const int64_t row = i / n * kStrip, column = i % n;
  StripProduct(a + row * k, k, 1, b + column, n, k, m - row, c + row * n + column, n);
}

HOTPACK_KERNEL_FUNCTION void TallMatMulSliceStrip(int64_t i, const float* a, const float* b, float* partial, int m,
                                                  int n, int64_t k, int slices) {
  const int64_t strips = (m + kStrip - 1) / kStrip;
  const int64_t slice = i / (strips * n);
  const int64_t row = i / n % strips * kStrip, column = i % n;
  const int64_t begin = k * slice / slices, end = k * (slice + 1) / slices;
  StripProduct(a + begin * m + row, 1, m, b + begin * n + column, n, end - begin, m - row,
               partial + (slice * m + row) * n + column, n);
}

HOTPACK_KERNEL_FUNCTION void TransposeElement(int64_t i, const float* in, float* out, int rows, int columns) {
  out[i] = in[i % rows * columns + i / rows];
}

struct Slice {
  int64_t begin, end;  // samples
};

HOTPACK_KERNEL_FUNCTION Slice SliceOf(int64_t i, int64_t count, int channels, int slices) {
  const int64_t slice = i / channels;
  return {count * slice / slices, count * (slice + 1) / slices};
}

HOTPACK_KERNEL_FUNCTION void ChannelSumsElement(int64_t i, const float* in, float* partial, int64_t count, int channels,
                                                int slices) {
  const Slice slice = SliceOf(i, count, channels, slices);
  const int64_t channel = i % channels;
  float sum = 0;
  for (int64_t s = slice.begin; s < slice.end; ++s) sum += in[s * channels + channel];
  partial[i] = sum;
}

HOTPACK_KERNEL_FUNCTION void ChannelSquaresElement(int64_t i, const float* in, const float* mean, float* partial,
                                                   int64_t count, int channels, int slices) {
  const Slice slice = SliceOf(i, count, channels, slices);
  const int64_t channel = i % channels;
  float sum = 0;
  for (int64_t s = slice.begin; s < slice.end; ++s) {
    const float distance = in[s * channels + channel] - mean[channel];
    sum += distance * distance;
  }
  partial[i] = sum;
}

HOTPACK_KERNEL_FUNCTION void ChannelProductsElement(int64_t i, const float* in, const float* mean,
                                                    const float* inverse_deviation, const float* gradient,
                                                    float* partial, int64_t count, int channels, int slices) {
  const Slice slice = SliceOf(i, count, channels, slices);
  const int64_t channel = i % channels;
  float sum = 0;
  for (int64_t s = slice.begin; s < slice.end; ++s) {
    sum += gradient[s * channels + channel] * (in[s * channels + channel] - mean[channel]);
  }
  partial[i] = sum * inverse_deviation[channel];
}

HOTPACK_KERNEL_FUNCTION void InverseDeviationElement(int64_t i, const float* variance, float* out, float epsilon) {
  out[i] = 1.0f / sqrtf(variance[i] + epsilon);
}

HOTPACK_KERNEL_FUNCTION void NormalizeElement(int64_t i, const float* in, const float* mean,
                                              const float* inverse_deviation, const float* scale, const float* shift,
                                              float* out, int channels) {
  const int64_t channel = i % channels;
  out[i] = (in[i] - mean[channel]) * inverse_deviation[channel] * scale[channel] + shift[channel];
}

HOTPACK_KERNEL_FUNCTION void NormalizeBackwardElement(int64_t i, const float* in, const float* mean,
                                                      const float* inverse_deviation, const float* scale,
                                                      const float* scale_gradient, const float* shift_gradient,
                                                      const float* out_gradient, float* in_gradient, int64_t count,
                                                      int channels) {
  const int64_t channel = i % channels;
  const float normalized = (in[i] - mean[channel]) * inverse_deviation[channel];
  const float through_statistics =
      (shift_gradient[channel] + normalized * scale_gradient[channel]) / static_cast<float>(count);
  in_gradient[i] = scale[channel] * inverse_deviation[channel] * (out_gradient[i] - through_statistics);
}

HOTPACK_KERNEL_FUNCTION void AveragePoolElement(int64_t i, const float* in, float* out, int positions, int channels) {
  const int64_t row = i / channels, channel = i % channels;
  float sum = 0;
  for (int p = 0; p < positions; ++p) sum += in[(row * positions + p) * channels + channel];
  out[i] = sum / static_cast<float>(positions);
}

HOTPACK_KERNEL_FUNCTION void AveragePoolBackwardElement(int64_t i, const float* out_gradient, float* in_gradient,
                                                        int positions, int channels) {
  const int64_t row = i / (static_cast<int64_t>(positions) * channels), channel = i % channels;
  in_gradient[i] = out_gradient[row * channels + channel] / static_cast<float>(positions);
}

HOTPACK_KERNEL_FUNCTION void AddElement(int64_t i, const float* a, const float* b, float* out) { out[i] = a[i] + b[i]; }

int64_t Strips(int64_t rows) { return (rows + kStrip - 1) / kStrip; }

}  // namespace

void Im2Col(const float* images, float* patches, const Patches& shape, int rows) {
  const int64_t count = static_cast<int64_t>(rows) * shape.Positions() * shape.Columns();
  Launch<Im2ColElement>(count, images, patches, shape.side, shape.channels, shape.kernel, shape.stride,
                        shape.OutSide());
}

void Col2Im(const float* patches, float* images, const Patches& shape, int rows) {
  Launch<Col2ImElement>(rows * shape.ImageSize(), patches, images, shape.side, shape.channels, shape.kernel,
                        shape.stride, shape.OutSide());
}

void TallMatMul(const float* a, const float* b, float* c, int64_t m, int n, int k) {
  Launch<TallMatMulStrip>(Strips(m) * n, a, b, c, m, n, k);
}

void TallMatMulTransposedASliced(const float* a, const float* b, float* partial, int m, int n, int64_t k, int slices) {
  Launch<TallMatMulSliceStrip>(Strips(m) * n * slices, a, b, partial, m, n, k, slices);
}

void Transpose(const float* in, float* out, int rows, int columns) {
  Launch<TransposeElement>(static_cast<int64_t>(rows) * columns, in, out, rows, columns);
}

void ChannelSums(const float* in, float* partial, int64_t count, int channels, int slices) {
  Launch<ChannelSumsElement>(static_cast<int64_t>(slices) * channels, in, partial, count, channels, slices);
}

void ChannelSquares(const float* in, const float* mean, float* partial, int64_t count, int channels, int slices) {
  Launch<ChannelSquaresElement>(static_cast<int64_t>(slices) * channels, in, mean, partial, count, channels, slices);
}

void ChannelProducts(const float* in, const float* mean, const float* inverse_deviation, const float* gradient,
                     float* partial, int64_t count, int channels, int slices) {
  Launch<ChannelProductsElement>(static_cast<int64_t>(slices) * channels, in, mean, inverse_deviation, gradient,
                                 partial, count, channels, slices);
}

void InverseDeviation(const float* variance, float* out, int channels, float epsilon) {
  Launch<InverseDeviationElement>(channels, variance, out, epsilon);
}

void Normalize(const float* in, const float* mean, const float* inverse_deviation, const float* scale,
               const float* shift, float* out, int64_t count, int channels) {
  Launch<NormalizeElement>(count * channels, in, mean, inverse_deviation, scale, shift, out, channels);
}

void NormalizeBackward(const float* in, const float* mean, const float* inverse_deviation, const float* scale,
                       const float* scale_gradient, const float* shift_gradient, const float* out_gradient,
                       float* in_gradient, int64_t count, int channels) {
  Launch<NormalizeBackwardElement>(count * channels, in, mean, inverse_deviation, scale, scale_gradient, shift_gradient,
                                   out_gradient, in_gradient, count, channels);
}

void AveragePool(const float* in, float* out, int rows, int positions, int channels) {
  Launch<AveragePoolElement>(static_cast<int64_t>(rows) * channels, in, out, positions, channels);
}

void AveragePoolBackward(const float* out_gradient, float* in_gradient, int rows, int positions, int channels) {
  Launch<AveragePoolBackwardElement>(static_cast<int64_t>(rows) * positions * channels, out_gradient, in_gradient,
                                     positions, channels);
}

void AddElements(const float* a, const float* b, float* out, int64_t count) { Launch<AddElement>(count, a, b, out); }

}  // namespace hotpack::train
