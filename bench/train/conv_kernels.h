// Device work of the convolutional net, in addition to kernels.h and under the same rules: float32, asynchronous, each
// result element summed by one thread in a fixed order, no atomic operations.
//
// Images are [rows, side, side, channels], so a convolution is one matrix product: patches [rows · positions, kernel ·
// kernel · channels] times weights [kernel · kernel · channels, out channels], whose result is an image again.
#pragma once

#include <cstdint>

namespace hotpack::train {

// How patches are taken from square images: padded with kernel / 2 zeros at each border.
struct Patches {
  int side = 1;      // of the image, ≥ 1
  int channels = 1;  // of the image, ≥ 1
  int kernel = 3;    // side of a patch, odd
  int stride = 1;    // ≥ 1

  constexpr int OutSide() const { return (side - 1) / stride + 1; }
  constexpr int Positions() const { return OutSide() * OutSide(); }
  constexpr int Columns() const { return kernel * kernel * channels; }  // elements of a patch
  constexpr int64_t ImageSize() const { return static_cast<int64_t>(side) * side * channels; }
};

// Copies patches: patches[row · positions + position, (ky, kx, channel)], zero outside the image.
void Im2Col(const float* images, float* patches, const Patches& shape, int rows);
// The adjoint: each element of an image becomes the sum of all its copies. It gathers, so that the order of the sum is
// fixed.
void Col2Im(const float* patches, float* images, const Patches& shape, int rows);

// c[m, n] = a[m, k] · b[k, n] for a long m. A thread computes a few rows of one column, so that b is read less often.
void TallMatMul(const float* a, const float* b, float* c, int64_t m, int n, int k);
// partial[s, m, n] = aᵀ · b over the s-th of `slices` equal parts of the k rows of a [k, m] and b [k, n], for a long k.
void TallMatMulTransposedASliced(const float* a, const float* b, float* partial, int m, int n, int64_t k, int slices);
// out[column, row] = in[row, column]
void Transpose(const float* in, float* out, int rows, int columns);

// Sums over the s-th of `slices` equal parts of `count` samples [count, channels]: partial[s, channel]
// of the samples, of their squared distances from the mean, and of gradient · normalised sample.
void ChannelSums(const float* in, float* partial, int64_t count, int channels, int slices);
void ChannelSquares(const float* in, const float* mean, float* partial, int64_t count, int channels, int slices);
void ChannelProducts(const float* in, const float* mean, const float* inverse_deviation, const float* gradient,
                     float* partial, int64_t count, int channels, int slices);
// out[i] = 1 / sqrt(variance[i] + epsilon)
void InverseDeviation(const float* variance, float* out, int channels, float epsilon);
// out = (in − mean) · inverse_deviation · scale + shift, each by channel
void Normalize(const float* in, const float* mean, const float* inverse_deviation, const float* scale,
               const float* shift, float* out, int64_t count, int channels);
// The gradient of the samples, where mean and deviation are those of the same `count` samples (Ioffe, Szegedy 2015,
// section 3). scale_gradient and shift_gradient are those of the same backward pass.
void NormalizeBackward(const float* in, const float* mean, const float* inverse_deviation, const float* scale,
                       const float* scale_gradient, const float* shift_gradient, const float* out_gradient,
                       float* in_gradient, int64_t count, int channels);

// out[row, channel] = mean over the positions of in[row, position, channel]; and back
void AveragePool(const float* in, float* out, int rows, int positions, int channels);
void AveragePoolBackward(const float* out_gradient, float* in_gradient, int rows, int positions, int channels);

// out = a + b
void AddElements(const float* a, const float* b, float* out, int64_t count);

}  // namespace hotpack::train
