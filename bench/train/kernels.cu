// The kernels. Compiled by nvcc for the program and by the host compiler for its test (launch.h).
#include <cmath>

#include "bench/train/kernels.h"
#include "bench/train/launch.h"

namespace hotpack::train {
namespace {

HOTPACK_KERNEL_FUNCTION void FillElement(int64_t i, float* out, float value) { out[i] = value; }

// splitmix64 (Steele, Lea, Flood 2014): one well mixed word per index.
HOTPACK_KERNEL_FUNCTION void UniformElement(int64_t i, float* out, uint64_t seed, float scale) {
  uint64_t z = seed + (static_cast<uint64_t>(i) + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  const float unit = static_cast<float>(z >> 40) * (1.0f / 16777216.0f);  // [0, 1), 24 bits
  out[i] = scale * (2.0f * unit - 1.0f);
}

// Returns element (row, column) of a product whose factors are read with any strides.
HOTPACK_KERNEL_FUNCTION float DotProduct(const float* a, int64_t a_step, const float* b, int64_t b_step, int length) {
  float sum = 0;
  for (int p = 0; p < length; ++p) sum += a[p * a_step] * b[p * b_step];
  return sum;
}

HOTPACK_KERNEL_FUNCTION void MatMulElement(int64_t i, const float* a, const float* b, float* c, int n, int k) {
  const int64_t row = i / n, column = i % n;
  c[i] = DotProduct(a + row * k, 1, b + column, n, k);
}

HOTPACK_KERNEL_FUNCTION void MatMulTransposedBElement(int64_t i, const float* a, const float* b, float* c, int n,
                                                      int k) {
  const int64_t row = i / n, column = i % n;
  c[i] = DotProduct(a + row * k, 1, b + column * k, 1, k);
}

HOTPACK_KERNEL_FUNCTION void MatMulSliceElement(int64_t i, const float* a, const float* b, float* partial, int m, int n,
                                                int k, int slices) {
  const int64_t slice = i / (static_cast<int64_t>(m) * n);
  const int64_t row = i / n % m, column = i % n;
  const int64_t begin = k * slice / slices, end = k * (slice + 1) / slices;
  partial[i] = DotProduct(a + begin * m + row, m, b + begin * n + column, n, static_cast<int>(end - begin));
}

HOTPACK_KERNEL_FUNCTION void SumSlicesElement(int64_t i, const float* in, float* out, int slices, int64_t count) {
  float sum = 0;
  for (int s = 0; s < slices; ++s) sum += in[s * count + i];
  out[i] = sum;
}

HOTPACK_KERNEL_FUNCTION void AddBiasElement(int64_t i, const float* in, const float* bias, float* out, int columns) {
  out[i] = in[i] + bias[i % columns];
}

HOTPACK_KERNEL_FUNCTION void SiluElement(int64_t i, const float* in, float* out) {
  out[i] = in[i] / (1.0f + expf(-in[i]));
}

HOTPACK_KERNEL_FUNCTION void SiluBackwardElement(int64_t i, const float* in, const float* out_gradient,
                                                 float* in_gradient) {
  const float sigmoid = 1.0f / (1.0f + expf(-in[i]));
  in_gradient[i] = out_gradient[i] * sigmoid * (1.0f + in[i] * (1.0f - sigmoid));
}

HOTPACK_KERNEL_FUNCTION void SoftmaxLossRow(int64_t row, const float* logits, const int32_t* labels,
                                            float* probabilities, float* losses, int columns) {
  const float* in = logits + row * columns;
  float* out = probabilities + row * columns;
  float largest = in[0];
  for (int c = 1; c < columns; ++c) largest = in[c] > largest ? in[c] : largest;
  float sum = 0;
  for (int c = 0; c < columns; ++c) sum += out[c] = expf(in[c] - largest);
  for (int c = 0; c < columns; ++c) out[c] /= sum;
  losses[row] = logf(sum) - (in[labels[row]] - largest);
}

HOTPACK_KERNEL_FUNCTION void SoftmaxLossBackwardElement(int64_t i, const float* probabilities, const int32_t* labels,
                                                        float* gradient, int rows, int columns, float weight) {
  const float target = labels[i / columns] == i % columns ? 1.0f : 0.0f;
  gradient[i] = weight * (probabilities[i] - target) / static_cast<float>(rows);
}

HOTPACK_KERNEL_FUNCTION void MeanElement(int64_t, const float* in, float* out, int64_t count) {
  float sum = 0;
  for (int64_t j = 0; j < count; ++j) sum += in[j];
  out[0] = sum / static_cast<float>(count);
}

HOTPACK_KERNEL_FUNCTION void CorrectRow(int64_t row, const float* logits, const int32_t* labels, float* out,
                                        int columns) {
  int best = 0;
  for (int c = 1; c < columns; ++c) best = logits[row * columns + c] > logits[row * columns + best] ? c : best;
  out[row] = best == labels[row] ? 1.0f : 0.0f;
}

HOTPACK_KERNEL_FUNCTION void AverageElement(int64_t i, float* state, const float* gradient, float decay) {
  state[i] = decay * state[i] + (1.0f - decay) * gradient[i];
}

HOTPACK_KERNEL_FUNCTION void AverageSquareElement(int64_t i, float* state, const float* gradient, float decay) {
  state[i] = decay * state[i] + (1.0f - decay) * gradient[i] * gradient[i];
}

HOTPACK_KERNEL_FUNCTION void ScaleElement(int64_t i, const float* in, float* out, float factor) {
  out[i] = in[i] * factor;
}

HOTPACK_KERNEL_FUNCTION void AddIntoElement(int64_t i, float* sum, const float* in) { sum[i] += in[i]; }

HOTPACK_KERNEL_FUNCTION void AdamDirectionElement(int64_t i, const float* mean, const float* variance, float* out,
                                                  float epsilon) {
  out[i] = mean[i] / (sqrtf(variance[i]) + epsilon);
}

HOTPACK_KERNEL_FUNCTION void DescendElement(int64_t i, float* weights, const float* direction, float rate) {
  weights[i] -= rate * direction[i];
}

int64_t Product(int rows, int columns) { return static_cast<int64_t>(rows) * columns; }

}  // namespace

void Fill(float* out, int64_t count, float value) { Launch<FillElement>(count, out, value); }

void FillUniform(float* out, int64_t count, uint64_t seed, float scale) {
  Launch<UniformElement>(count, out, seed, scale);
}

void MatMul(const float* a, const float* b, float* c, int m, int n, int k) {
  Launch<MatMulElement>(Product(m, n), a, b, c, n, k);
}

void MatMulTransposedB(const float* a, const float* b, float* c, int m, int n, int k) {
  Launch<MatMulTransposedBElement>(Product(m, n), a, b, c, n, k);
}

void MatMulTransposedASliced(const float* a, const float* b, float* partial, int m, int n, int k, int slices) {
  Launch<MatMulSliceElement>(Product(m, n) * slices, a, b, partial, m, n, k, slices);
}

void SumSlices(const float* in, float* out, int slices, int64_t count) {
  Launch<SumSlicesElement>(count, in, out, slices, count);
}

void AddBias(const float* in, const float* bias, float* out, int rows, int columns) {
  Launch<AddBiasElement>(Product(rows, columns), in, bias, out, columns);
}

void Silu(const float* in, float* out, int64_t count) { Launch<SiluElement>(count, in, out); }

void SiluBackward(const float* in, const float* out_gradient, float* in_gradient, int64_t count) {
  Launch<SiluBackwardElement>(count, in, out_gradient, in_gradient);
}

void SoftmaxLoss(const float* logits, const int32_t* labels, float* probabilities, float* losses, int rows,
                 int columns) {
  Launch<SoftmaxLossRow>(rows, logits, labels, probabilities, losses, columns);
}

void SoftmaxLossBackward(const float* probabilities, const int32_t* labels, float* gradient, int rows, int columns,
                         float weight) {
  Launch<SoftmaxLossBackwardElement>(Product(rows, columns), probabilities, labels, gradient, rows, columns, weight);
}

void Mean(const float* in, float* out, int64_t count) { Launch<MeanElement>(1, in, out, count); }

void Correct(const float* logits, const int32_t* labels, float* out, int rows, int columns) {
  Launch<CorrectRow>(rows, logits, labels, out, columns);
}

void MovingAverage(float* state, const float* gradient, int64_t count, float decay) {
  Launch<AverageElement>(count, state, gradient, decay);
}

void MovingAverageOfSquares(float* state, const float* gradient, int64_t count, float decay) {
  Launch<AverageSquareElement>(count, state, gradient, decay);
}

void Scale(const float* in, float* out, int64_t count, float factor) { Launch<ScaleElement>(count, in, out, factor); }

void AddInto(float* sum, const float* in, int64_t count) { Launch<AddIntoElement>(count, sum, in); }

void AdamDirection(const float* mean, const float* variance, float* out, int64_t count, float epsilon) {
  Launch<AdamDirectionElement>(count, mean, variance, out, epsilon);
}

void Descend(float* weights, const float* direction, int64_t count, float rate) {
  Launch<DescendElement>(count, weights, direction, rate);
}

}  // namespace hotpack::train
