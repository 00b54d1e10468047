// The kernels. Compiled by nvcc for the program and by the host compiler for its test (launch.h).
#include <cmath>

#include "bench/train/launch.h"
#include "bench/train/seq2seq_kernels.h"

namespace hotpack::train {
namespace {

HOTPACK_KERNEL_FUNCTION void AddElement(int64_t i, const float* a, const float* b, float* out) { out[i] = a[i] + b[i]; }

HOTPACK_KERNEL_FUNCTION void CopyElement(int64_t i, const float* in, float* out) { out[i] = in[i]; }

HOTPACK_KERNEL_FUNCTION void CopyWordElement(int64_t i, const int32_t* in, int32_t* out) { out[i] = in[i]; }

HOTPACK_KERNEL_FUNCTION void TanhOfSumElement(int64_t i, const float* a, const float* b, const float* bias, float* out,
                                              int columns) {
  out[i] = tanhf(a[i] + b[i] + bias[i % columns]);
}

HOTPACK_KERNEL_FUNCTION void TanhBackwardElement(int64_t i, const float* out, const float* out_gradient,
                                                 float* in_gradient) {
  in_gradient[i] = out_gradient[i] * (1.0f - out[i] * out[i]);
}

HOTPACK_KERNEL_FUNCTION void MatMulTransposedBSliceElement(int64_t i, const float* a, const float* b, float* partial,
                                                           int m, int n, int k, int slices) {
  const int64_t slice = i / (static_cast<int64_t>(m) * n);
  const int64_t row = i / n % m, column = i % n;
  const int64_t begin = k * slice / slices, end = k * (slice + 1) / slices;
  const float* a_row = a + row * k;
  const float* b_row = b + column * k;
  float sum = 0;
  for (int64_t p = begin; p < end; ++p) sum += a_row[p] * b_row[p];
  partial[i] = sum;
}

HOTPACK_KERNEL_FUNCTION void EmbedElement(int64_t i, const float* table, const int32_t* words, float* out, int width) {
  out[i] = table[static_cast<int64_t>(words[i / width]) * width + i % width];
}

HOTPACK_KERNEL_FUNCTION void EmbedBackwardElement(int64_t i, const float* gradient, const int32_t* offsets,
                                                  const int32_t* positions, float* table_gradient, int width) {
  const int64_t word = i / width, column = i % width;
  float sum = 0;
  for (int32_t p = offsets[word]; p < offsets[word + 1]; ++p) {
    sum += gradient[static_cast<int64_t>(positions[p]) * width + column];
  }
  table_gradient[i] = sum;
}

HOTPACK_KERNEL_FUNCTION float Sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

HOTPACK_KERNEL_FUNCTION bool Ended(const int32_t* lengths, int64_t row, int step) {
  return lengths != nullptr && step >= lengths[row];
}

// Where the four gates of state element i lie: at + 0, width, 2 · width, 3 · width.
HOTPACK_KERNEL_FUNCTION int64_t FirstGate(int64_t i, int width) { return i / width * 4 * width + i % width; }

HOTPACK_KERNEL_FUNCTION void LstmForwardElement(int64_t i, const float* input_product, const float* hidden_product,
                                                const float* bias, const float* previous_hidden,
                                                const float* previous_cell, const int32_t* lengths, int step,
                                                float* gates, float* cell, float* hidden, int width) {
  const int64_t at = FirstGate(i, width), column = i % width;
  float sums[4];
  for (int g = 0; g < 4; ++g) {
    const int64_t offset = static_cast<int64_t>(g) * width;
    sums[g] = input_product[at + offset] + hidden_product[at + offset] + bias[column + offset];
  }
  const float input_gate = Sigmoid(sums[0]), forget_gate = Sigmoid(sums[1]);
  const float candidate = tanhf(sums[2]), output_gate = Sigmoid(sums[3]);
  gates[at] = input_gate;
  gates[at + width] = forget_gate;
  gates[at + 2 * width] = candidate;
  gates[at + 3 * width] = output_gate;
  const float next = forget_gate * previous_cell[i] + input_gate * candidate;
  const bool ended = Ended(lengths, i / width, step);
  cell[i] = ended ? previous_cell[i] : next;
  hidden[i] = ended ? previous_hidden[i] : output_gate * tanhf(next);
}

HOTPACK_KERNEL_FUNCTION void LstmBackwardElement(int64_t i, const float* hidden_gradient, const float* cell_gradient,
                                                 const float* gates, const float* previous_cell, const float* cell,
                                                 const int32_t* lengths, int step, float* sum_gradient,
                                                 float* previous_cell_gradient, int width) {
  const int64_t at = FirstGate(i, width);
  if (Ended(lengths, i / width, step)) {
    for (int g = 0; g < 4; ++g) sum_gradient[at + static_cast<int64_t>(g) * width] = 0;
    previous_cell_gradient[i] = cell_gradient[i];
    return;
  }
  const float input_gate = gates[at], forget_gate = gates[at + width];
  const float candidate = gates[at + 2 * width], output_gate = gates[at + 3 * width];
  const float squashed = tanhf(cell[i]);
  const float of_cell = cell_gradient[i] + hidden_gradient[i] * output_gate * (1.0f - squashed * squashed);
  sum_gradient[at] = of_cell * candidate * input_gate * (1.0f - input_gate);
  sum_gradient[at + width] = of_cell * previous_cell[i] * forget_gate * (1.0f - forget_gate);
  sum_gradient[at + 2 * width] = of_cell * input_gate * (1.0f - candidate * candidate);
  sum_gradient[at + 3 * width] = hidden_gradient[i] * squashed * output_gate * (1.0f - output_gate);
  previous_cell_gradient[i] = of_cell * forget_gate;
}

HOTPACK_KERNEL_FUNCTION void KeepEndedElement(int64_t i, const float* gradient, const int32_t* lengths, int step,
                                              float* previous_gradient, int width) {
  if (Ended(lengths, i / width, step)) previous_gradient[i] = gradient[i];
}

HOTPACK_KERNEL_FUNCTION void AttentionScoreElement(int64_t i, const float* query, const float* memory, float* scores,
                                                   int rows, int steps, int width) {
  const int64_t row = i / steps, step = i % steps;
  const float* left = query + row * width;
  const float* right = memory + (step * rows + row) * width;
  float sum = 0;
  for (int p = 0; p < width; ++p) sum += left[p] * right[p];
  scores[i] = sum;
}

HOTPACK_KERNEL_FUNCTION void AttentionWeightsRow(int64_t row, const float* scores, const int32_t* lengths,
                                                 float* weights, int steps) {
  const float* in = scores + row * steps;
  float* out = weights + row * steps;
  const int length = lengths[row];
  float largest = in[0];
  for (int s = 1; s < length; ++s) largest = in[s] > largest ? in[s] : largest;
  float sum = 0;
  for (int s = 0; s < length; ++s) sum += out[s] = expf(in[s] - largest);
  for (int s = 0; s < length; ++s) out[s] /= sum;
  for (int s = length; s < steps; ++s) out[s] = 0;
}

HOTPACK_KERNEL_FUNCTION void AttentionWeightsBackwardRow(int64_t row, const float* weights,
                                                         const float* weights_gradient, float* scores_gradient,
                                                         int steps) {
  const float* weight = weights + row * steps;
  const float* gradient = weights_gradient + row * steps;
  float mean = 0;
  for (int s = 0; s < steps; ++s) mean += weight[s] * gradient[s];
  for (int s = 0; s < steps; ++s) scores_gradient[row * steps + s] = weight[s] * (gradient[s] - mean);
}

HOTPACK_KERNEL_FUNCTION void AttentionSumElement(int64_t i, const float* weights, const float* memory, float* out,
                                                 int rows, int steps, int width) {
  const int64_t row = i / width;
  const int64_t stride = static_cast<int64_t>(rows) * width;
  float sum = 0;
  for (int s = 0; s < steps; ++s) sum += weights[row * steps + s] * memory[s * stride + i];
  out[i] = sum;
}

HOTPACK_KERNEL_FUNCTION void AttentionMemoryBackwardElement(int64_t i, const float* weights,
                                                            const float* context_gradient, const float* scores_gradient,
                                                            const float* query, float* memory_gradient, int rows,
                                                            int steps, int width) {
  const int64_t step = i / (static_cast<int64_t>(rows) * width);
  const int64_t element = i % (static_cast<int64_t>(rows) * width);  // of query and context
  const int64_t at = element / width * steps + step;
  memory_gradient[i] += weights[at] * context_gradient[element] + scores_gradient[at] * query[element];
}

HOTPACK_KERNEL_FUNCTION void ChunkSumsElement(int64_t i, const float* logits, float* largest, float* sums, int columns,
                                              int chunks) {
  const float* row = logits + i / chunks * columns;
  const int begin = static_cast<int>(i % chunks) * kChunk;
  const int end = begin + kChunk < columns ? begin + kChunk : columns;
  float top = row[begin];
  for (int c = begin + 1; c < end; ++c) top = row[c] > top ? row[c] : top;
  float sum = 0;
  for (int c = begin; c < end; ++c) sum += expf(row[c] - top);
  largest[i] = top;
  sums[i] = sum;
}

HOTPACK_KERNEL_FUNCTION void LogSumRow(int64_t row, const float* largest, const float* sums, float* log_sums,
                                       int chunks) {
  const float* top = largest + row * chunks;
  float over_all = top[0];
  for (int c = 1; c < chunks; ++c) over_all = top[c] > over_all ? top[c] : over_all;
  float sum = 0;
  for (int c = 0; c < chunks; ++c) sum += sums[row * chunks + c] * expf(top[c] - over_all);
  log_sums[row] = over_all + logf(sum);
}

HOTPACK_KERNEL_FUNCTION void WordLossRow(int64_t row, const float* logits, const float* log_sums,
                                         const int32_t* targets, const int32_t* lengths, int step, float factor,
                                         float* losses, int columns) {
  losses[row] = Ended(lengths, row, step) ? 0.0f
                                          : factor / static_cast<float>(lengths[row]) *
                                                (log_sums[row] - logits[row * columns + targets[row]]);
}

HOTPACK_KERNEL_FUNCTION void ProbabilityElement(int64_t i, const float* logits, const float* log_sums,
                                                float* probabilities, int columns) {
  probabilities[i] = expf(logits[i] - log_sums[i / columns]);
}

HOTPACK_KERNEL_FUNCTION void WordLossBackwardElement(int64_t i, const float* probabilities, const int32_t* targets,
                                                     const int32_t* lengths, int step, float factor, float* gradient,
                                                     int columns) {
  const int64_t row = i / columns;
  const float target = targets[row] == i % columns ? 1.0f : 0.0f;
  gradient[i] =
      Ended(lengths, row, step) ? 0.0f : factor / static_cast<float>(lengths[row]) * (probabilities[i] - target);
}

HOTPACK_KERNEL_FUNCTION void ChunkBestElement(int64_t i, const float* logits, int32_t* best, int columns, int chunks) {
  const float* row = logits + i / chunks * columns;
  const int begin = static_cast<int>(i % chunks) * kChunk;
  const int end = begin + kChunk < columns ? begin + kChunk : columns;
  int32_t top = begin;
  for (int c = begin + 1; c < end; ++c) top = row[c] > row[top] ? c : top;
  best[i] = top;
}

HOTPACK_KERNEL_FUNCTION void BestWordRow(int64_t row, const float* logits, const int32_t* best, int32_t* words,
                                         int columns, int chunks) {
  const float* in = logits + row * columns;
  int32_t top = best[row * chunks];
  for (int c = 1; c < chunks; ++c) {
    const int32_t other = best[row * chunks + c];
    top = in[other] > in[top] ? other : top;
  }
  words[row] = top;
}

int64_t Product(int64_t rows, int columns) { return rows * columns; }

}  // namespace

void Add(const float* a, const float* b, float* out, int64_t count) { Launch<AddElement>(count, a, b, out); }

void Copy(const float* in, float* out, int64_t count) { Launch<CopyElement>(count, in, out); }

void CopyWords(const int32_t* in, int32_t* out, int64_t count) { Launch<CopyWordElement>(count, in, out); }

void TanhOfSum(const float* a, const float* b, const float* bias, float* out, int rows, int columns) {
  Launch<TanhOfSumElement>(Product(rows, columns), a, b, bias, out, columns);
}

void TanhBackward(const float* out, const float* out_gradient, float* in_gradient, int64_t count) {
  Launch<TanhBackwardElement>(count, out, out_gradient, in_gradient);
}

void MatMulTransposedBSliced(const float* a, const float* b, float* partial, int m, int n, int k, int slices) {
  Launch<MatMulTransposedBSliceElement>(Product(m, n) * slices, a, b, partial, m, n, k, slices);
}

void Embed(const float* table, const int32_t* words, float* out, int64_t count, int width) {
  Launch<EmbedElement>(Product(count, width), table, words, out, width);
}

void EmbedBackward(const float* gradient, const int32_t* offsets, const int32_t* positions, float* table_gradient,
                   int vocabulary, int width) {
  Launch<EmbedBackwardElement>(Product(vocabulary, width), gradient, offsets, positions, table_gradient, width);
}

void LstmForward(const float* input_product, const float* hidden_product, const float* bias,
                 const float* previous_hidden, const float* previous_cell, const int32_t* lengths, int step,
                 float* gates, float* cell, float* hidden, int rows, int width) {
  Launch<LstmForwardElement>(Product(rows, width), input_product, hidden_product, bias, previous_hidden, previous_cell,
                             lengths, step, gates, cell, hidden, width);
}

void LstmBackward(const float* hidden_gradient, const float* cell_gradient, const float* gates,
                  const float* previous_cell, const float* cell, const int32_t* lengths, int step, float* sum_gradient,
                  float* previous_cell_gradient, int rows, int width) {
  Launch<LstmBackwardElement>(Product(rows, width), hidden_gradient, cell_gradient, gates, previous_cell, cell, lengths,
                              step, sum_gradient, previous_cell_gradient, width);
}

void KeepEndedRows(const float* gradient, const int32_t* lengths, int step, float* previous_gradient, int rows,
                   int width) {
  Launch<KeepEndedElement>(Product(rows, width), gradient, lengths, step, previous_gradient, width);
}

void AttentionScores(const float* query, const float* memory, float* scores, int rows, int steps, int width) {
  Launch<AttentionScoreElement>(Product(rows, steps), query, memory, scores, rows, steps, width);
}

void AttentionWeights(const float* scores, const int32_t* lengths, float* weights, int rows, int steps) {
  Launch<AttentionWeightsRow>(rows, scores, lengths, weights, steps);
}

void AttentionWeightsBackward(const float* weights, const float* weights_gradient, float* scores_gradient, int rows,
                              int steps) {
  Launch<AttentionWeightsBackwardRow>(rows, weights, weights_gradient, scores_gradient, steps);
}

void AttentionSum(const float* weights, const float* memory, float* out, int rows, int steps, int width) {
  Launch<AttentionSumElement>(Product(rows, width), weights, memory, out, rows, steps, width);
}

void AttentionMemoryBackward(const float* weights, const float* context_gradient, const float* scores_gradient,
                             const float* query, float* memory_gradient, int rows, int steps, int width) {
  Launch<AttentionMemoryBackwardElement>(Product(rows, width) * steps, weights, context_gradient, scores_gradient,
                                         query, memory_gradient, rows, steps, width);
}

void ChunkSums(const float* logits, float* largest, float* sums, int rows, int columns) {
  Launch<ChunkSumsElement>(Product(rows, Chunks(columns)), logits, largest, sums, columns, Chunks(columns));
}

void LogSums(const float* largest, const float* sums, float* log_sums, int rows, int chunks) {
  Launch<LogSumRow>(rows, largest, sums, log_sums, chunks);
}

void WordLosses(const float* logits, const float* log_sums, const int32_t* targets, const int32_t* lengths, int step,
                float factor, float* losses, int rows, int columns) {
  Launch<WordLossRow>(rows, logits, log_sums, targets, lengths, step, factor, losses, columns);
}

void Probabilities(const float* logits, const float* log_sums, float* probabilities, int rows, int columns) {
  Launch<ProbabilityElement>(Product(rows, columns), logits, log_sums, probabilities, columns);
}

void WordLossesBackward(const float* probabilities, const int32_t* targets, const int32_t* lengths, int step,
                        float factor, float* gradient, int rows, int columns) {
  Launch<WordLossBackwardElement>(Product(rows, columns), probabilities, targets, lengths, step, factor, gradient,
                                  columns);
}

void ChunkBest(const float* logits, int32_t* best, int rows, int columns) {
  Launch<ChunkBestElement>(Product(rows, Chunks(columns)), logits, best, columns, Chunks(columns));
}

void BestWords(const float* logits, const int32_t* best, int32_t* words, int rows, int columns) {
  Launch<BestWordRow>(rows, logits, best, words, columns, Chunks(columns));
}

}  // namespace hotpack::train
