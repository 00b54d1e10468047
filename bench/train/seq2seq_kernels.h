// Device work of the sequence-to-sequence model, in addition to kernels.h and under the same rules: row-major float32
// in device memory, asynchronous on the compute stream, each result element by one thread in a fixed order, no atomic
// operations.
//
// Sequences are time-major: [step, row, ...]. `lengths` holds each row's number of words. At `step` a row takes part if
// step < lengths[row]. Otherwise it has ended.
#pragma once

#include <cstdint>

namespace hotpack::train {

// out = a + b
void Add(const float* a, const float* b, float* out, int64_t count);
void Copy(const float* in, float* out, int64_t count);
void CopyWords(const int32_t* in, int32_t* out, int64_t count);
// out[row, column] = tanh(a[row, column] + b[row, column] + bias[column])
void TanhOfSum(const float* a, const float* b, const float* bias, float* out, int rows, int columns);
// in_gradient from `out` = tanh(in) and its gradient
void TanhBackward(const float* out, const float* out_gradient, float* in_gradient, int64_t count);
// partial[s, m, n] = a · bᵀ over the s-th of `slices` equal parts of the k columns of a [m, k] and b [n, k]
void MatMulTransposedBSliced(const float* a, const float* b, float* partial, int m, int n, int k, int slices);

// out[i, :] = table[words[i], :]
void Embed(const float* table, const int32_t* words, float* out, int64_t count, int width);
// table_gradient[word, :] = sum of gradient[p, :] over p = positions[offsets[word]] .. positions[offsets[word + 1] −
// 1]. It gathers by word, so that the order of the sum is fixed.
void EmbedBackward(const float* gradient, const int32_t* offsets, const int32_t* positions, float* table_gradient,
                   int vocabulary, int width);

// One step of an LSTM cell (Hochreiter, Schmidhuber 1997, with the forget gate of Gers et al. 2000). The sum of the two
// products [row, 4 · width] and the bias [4 · width] holds input gate, forget gate, candidate and output gate, in this
// order. `gates` receives them after activation. A row that has ended keeps its state. If `lengths` is null, no row
// ends.
void LstmForward(const float* input_product, const float* hidden_product, const float* bias,
                 const float* previous_hidden, const float* previous_cell, const int32_t* lengths, int step,
                 float* gates, float* cell, float* hidden, int rows, int width);
// Computes the gradients of the gates' sums and of `previous_cell` from those of `hidden` and `cell`.
void LstmBackward(const float* hidden_gradient, const float* cell_gradient, const float* gates,
                  const float* previous_cell, const float* cell, const int32_t* lengths, int step, float* sum_gradient,
                  float* previous_cell_gradient, int rows, int width);
// previous_gradient[row, :] = gradient[row, :] in rows that have ended. Other rows are unchanged.
void KeepEndedRows(const float* gradient, const int32_t* lengths, int step, float* previous_gradient, int rows,
                   int width);

// Attention (Luong et al. 2015) of queries [row, width] over a memory [step, row, width].
// scores[row, step] = query[row, :] · memory[step, row, :]
void AttentionScores(const float* query, const float* memory, float* scores, int rows, int steps, int width);
// weights[row, :] = softmax of the row's scores before its length (≥ 1); 0 from there on
void AttentionWeights(const float* scores, const int32_t* lengths, float* weights, int rows, int steps);
void AttentionWeightsBackward(const float* weights, const float* weights_gradient, float* scores_gradient, int rows,
                              int steps);
// out[row, :] = sum over steps of weights[row, step] · memory[step, row, :]
void AttentionSum(const float* weights, const float* memory, float* out, int rows, int steps, int width);
// memory_gradient[step, row, :] += weights[row, step] · context_gradient[row, :] + scores_gradient[row, step] ·
// query[row, :]
void AttentionMemoryBackward(const float* weights, const float* context_gradient, const float* scores_gradient,
                             const float* query, float* memory_gradient, int rows, int steps, int width);

// One thread reads a chunk of a row of logits, because a row is too long for one thread.
constexpr int kChunk = 64;
constexpr int Chunks(int columns) { return (columns + kChunk - 1) / kChunk; }
// For each chunk of each row: the largest logit, and the sum of exp(logit − largest); both [row, chunk].
void ChunkSums(const float* logits, float* largest, float* sums, int rows, int columns);
// log_sums[row] = log of the sum of exp(logits[row, :])
void LogSums(const float* largest, const float* sums, float* log_sums, int rows, int chunks);
// losses[row] = factor / lengths[row] · (log_sums[row] − logits[row, targets[row]]); 0 in rows that have ended
void WordLosses(const float* logits, const float* log_sums, const int32_t* targets, const int32_t* lengths, int step,
                float factor, float* losses, int rows, int columns);
// probabilities = exp(logits − log_sums[row])
void Probabilities(const float* logits, const float* log_sums, float* probabilities, int rows, int columns);
// The gradient of the sum of those losses with respect to the logits.
void WordLossesBackward(const float* probabilities, const int32_t* targets, const int32_t* lengths, int step,
                        float factor, float* gradient, int rows, int columns);
// best[row, chunk] = column of the chunk's largest logit (the first of equals)
void ChunkBest(const float* logits, int32_t* best, int rows, int columns);
// words[row] = column of the row's largest logit
void BestWords(const float* logits, const int32_t* best, int32_t* words, int rows, int columns);

}  // namespace hotpack::train
