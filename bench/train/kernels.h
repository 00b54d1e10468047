// Device work that the training programs share. All matrices are row-major, float32, in device memory. Every call is
// asynchronous on the compute stream. A failed launch throws std::runtime_error.
//
// One thread computes each result element and adds in a fixed order, without atomic operations. So equal inputs give
// equal bits, wherever the tensors lie, and a run under hotpack can be compared with one without it.
#pragma once

#include <cstdint>

namespace hotpack::train {

void Fill(float* out, int64_t count, float value);
// Uniform in [-scale, scale), a pure function of (seed, index).
void FillUniform(float* out, int64_t count, uint64_t seed, float scale);

// c[m, n] = a[m, k] · b[k, n], and with one factor transposed:
void MatMul(const float* a, const float* b, float* c, int m, int n, int k);
void MatMulTransposedB(const float* a, const float* b, float* c, int m, int n, int k);  // b is [n, k]
// partial[s, m, n] = aᵀ · b over the s-th of `slices` equal parts of the k rows of a [k, m] and b [k, n]. The caller
// adds the slices (SumSlices). It splits the long dimension as libraries do with a workspace.
void MatMulTransposedASliced(const float* a, const float* b, float* partial, int m, int n, int k, int slices);
// out[i] = sum over s of in[s, i]
void SumSlices(const float* in, float* out, int slices, int64_t count);

// out[row, column] = in[row, column] + bias[column]
void AddBias(const float* in, const float* bias, float* out, int rows, int columns);
// SiLU: x · sigmoid(x). It is smooth, so that numeric gradients are meaningful everywhere.
void Silu(const float* in, float* out, int64_t count);
void SiluBackward(const float* in, const float* out_gradient, float* in_gradient, int64_t count);

// probabilities[row, :] = softmax(logits[row, :]); losses[row] = -log probabilities[row, labels[row]]
void SoftmaxLoss(const float* logits, const int32_t* labels, float* probabilities, float* losses, int rows,
                 int columns);
// gradient of weight · (mean loss) with respect to the logits
void SoftmaxLossBackward(const float* probabilities, const int32_t* labels, float* gradient, int rows, int columns,
                         float weight = 1.0f);
// out[0] = mean of in
void Mean(const float* in, float* out, int64_t count);
// out[row] = 1 if the largest logit of the row is the label's, else 0
void Correct(const float* logits, const int32_t* labels, float* out, int rows, int columns);

// state = decay · state + (1 − decay) · gradient, or · gradient² for the second moment
void MovingAverage(float* state, const float* gradient, int64_t count, float decay);
void MovingAverageOfSquares(float* state, const float* gradient, int64_t count, float decay);
// out = in · factor; out may be in
void Scale(const float* in, float* out, int64_t count, float factor);
// sum += in
void AddInto(float* sum, const float* in, int64_t count);
// out = mean / (sqrt(variance) + epsilon)
void AdamDirection(const float* mean, const float* variance, float* out, int64_t count, float epsilon);
// weights −= rate · direction
void Descend(float* weights, const float* direction, int64_t count, float rate);

}  // namespace hotpack::train
