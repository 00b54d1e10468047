#include "bench/train/seq2seq_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "bench/train/kernels.h"
#include "bench/train/seq2seq_kernels.h"

namespace hotpack::train {
namespace {

constexpr int kSlices = 16;  // parts of the vocabulary in the output projection's backward workspace
constexpr float kEmbeddingScale = 0.5f;

int64_t Elements(int rows, int columns) { return static_cast<int64_t>(rows) * columns; }

DeviceSentences::Index StartIndex(Device& device, const WordIndex& index) {
  return {Labels::StartCopy(device, index.offsets), Labels::StartCopy(device, index.positions)};
}

}  // namespace

DeviceSentences StartSources(Device& device, const SentenceBatch& batch) {
  DeviceSentences sentences;
  sentences.rows = batch.rows;
  sentences.source_steps = batch.source_steps;
  sentences.source = Labels::StartCopy(device, batch.source);
  sentences.source_lengths = Labels::StartCopy(device, batch.source_lengths);
  return sentences;
}

DeviceSentences StartSentences(Device& device, const SentenceBatch& batch, int vocabulary) {
  DeviceSentences sentences = StartSources(device, batch);
  sentences.target_steps = batch.target_steps;
  sentences.inputs = Labels::StartCopy(device, batch.inputs);
  sentences.targets = Labels::StartCopy(device, batch.targets);
  sentences.target_lengths = Labels::StartCopy(device, batch.target_lengths);
  sentences.source_index = StartIndex(device, MakeWordIndex(batch.source, batch.source_lengths, vocabulary));
  sentences.input_index = StartIndex(device, MakeWordIndex(batch.inputs, batch.target_lengths, vocabulary));
  return sentences;
}

Seq2Seq::Seq2Seq(Device& device, const Seq2SeqShape& shape, uint64_t seed)
    : device_(device),
      shape_(shape),
      source_table_(
          AppendParameter(device, parameters_, Elements(shape.vocabulary, shape.width), seed, kEmbeddingScale)),
      target_table_(
          AppendParameter(device, parameters_, Elements(shape.vocabulary, shape.width), seed, kEmbeddingScale)),
      encoder_(device, parameters_, shape.layers, shape.width, seed),
      decoder_(device, parameters_, shape.layers, shape.width, seed),
      attention_(device, parameters_, shape.width, seed),
      out_weights_(AppendParameter(device, parameters_, Elements(shape.width, shape.vocabulary), seed,
                                   std::sqrt(3.0f / static_cast<float>(shape.width)))),
      out_bias_(AppendParameter(device, parameters_, shape.vocabulary, seed, 0.0f)) {
  if (shape.gain == 1.0f) return;
  for (Parameter& parameter : parameters_) {
    Scale(parameter.value.data(), parameter.value.data(), parameter.value.count(), shape.gain);
  }
}

Tensor Seq2Seq::EmbedWords(size_t table, const int32_t* words, int64_t count) const {
  Tensor embedded(device_, count * shape_.width);
  Embed(parameters_[table].value.data(), words, embedded.data(), count, shape_.width);
  return embedded;
}

void Seq2Seq::AddEmbeddingGradient(size_t table, Tensor gradient, DeviceSentences::Index index) {
  Tensor of_table(device_, parameters_[table].value.count());
  EmbedBackward(gradient.data(), index.offsets.data(), index.positions.data(), of_table.data(), shape_.vocabulary,
                shape_.width);
  AddGradient(device_, parameters_[table], std::move(of_table));
}

Seq2Seq::Encoded Seq2Seq::Encode(const DeviceSentences& sentences, bool training) const {
  const int rows = sentences.rows, steps = sentences.source_steps;
  const int64_t state = Elements(rows, shape_.width);
  Encoded encoded;
  encoded.words = EmbedWords(source_table_, sentences.source.data(), Elements(rows, steps));
  encoded.memory.lengths = sentences.source_lengths.data();
  encoded.memory.rows = rows;
  encoded.memory.steps = steps;
  encoded.memory.states = Tensor(device_, state * steps);
  encoded.states.push_back(encoder_.Start(rows));
  for (int step = 0; step < steps; ++step) {
    encoded.states.push_back(encoder_.Step(encoded.words.data() + step * state, encoded.states.back(),
                                           sentences.source_lengths.data(), step, rows, training));
    Copy(encoded.states.back().back().hidden.data(), encoded.memory.states.data() + step * state, state);
    if (!training) encoded.states.pop_front();
  }
  if (!training) encoded.words.Reset();
  return encoded;
}

Tensor Seq2Seq::Project(const Tensor& attended, int rows) const {
  Tensor product(device_, Elements(rows, shape_.vocabulary));
  MatMul(attended.data(), parameters_[out_weights_].value.data(), product.data(), rows, shape_.vocabulary,
         shape_.width);
  Tensor logits(device_, product.count());
  AddBias(product.data(), parameters_[out_bias_].value.data(), logits.data(), rows, shape_.vocabulary);
  return logits;
}

void Seq2Seq::WordLoss(const Tensor& logits, const DeviceSentences& sentences, int step, float factor, Tensor& losses,
                       Tensor* probabilities) const {
  const int rows = sentences.rows, words = shape_.vocabulary;
  Tensor largest(device_, Elements(rows, Chunks(words)));
  Tensor sums(device_, Elements(rows, Chunks(words)));
  ChunkSums(logits.data(), largest.data(), sums.data(), rows, words);
  Tensor log_sums(device_, rows);
  LogSums(largest.data(), sums.data(), log_sums.data(), rows, Chunks(words));
  largest.Reset();
  sums.Reset();
  const int64_t at = Elements(rows, step);
  WordLosses(logits.data(), log_sums.data(), sentences.targets.data() + at, sentences.target_lengths.data(), step,
             factor, losses.data() + at, rows, words);
  if (probabilities == nullptr) return;
  *probabilities = Tensor(device_, logits.count());
  Probabilities(logits.data(), log_sums.data(), probabilities->data(), rows, words);
}

Tensor Seq2Seq::Forward(const DeviceSentences& sentences, float weight, bool training, Pass& pass) const {
  const int rows = sentences.rows, steps = sentences.target_steps;
  const float factor = weight / static_cast<float>(rows);
  pass.encoded = Encode(sentences, training);
  pass.words = EmbedWords(target_table_, sentences.inputs.data(), Elements(rows, steps));
  Tensor losses(device_, Elements(rows, steps));
  for (int step = 0; step < steps; ++step) {
    const StackStep& previous = pass.decoded.empty() ? pass.encoded.states.back() : pass.decoded.back().layers;
    DecoderStep now;
    now.layers =
        decoder_.Step(pass.words.data() + Elements(rows, step) * shape_.width, previous, nullptr, step, rows, training);
    now.attended = attention_.Forward(now.layers.back().hidden.data(), pass.encoded.memory);
    const Tensor logits = Project(now.attended.out, rows);
    WordLoss(logits, sentences, step, factor, losses, training ? &now.probabilities : nullptr);
    if (!training) {
      pass.decoded.clear();
      now.attended = {};
    }
    pass.decoded.push_back(std::move(now));
  }
  Tensor row_losses(device_, rows);
  SumSlices(losses.data(), row_losses.data(), steps, rows);
  losses.Reset();
  Tensor loss(device_, 1);
  SumSlices(row_losses.data(), loss.data(), rows, 1);
  return loss;
}

Tensor Seq2Seq::Loss(DeviceSentences sentences, float weight) {
  Pass pass;
  return Forward(sentences, weight, false, pass);
}

// Computes the gradient of attention's output from the step's probabilities.
Tensor Seq2Seq::ProjectBackward(DecoderStep& step, const int32_t* targets, const int32_t* lengths, int number, int rows,
                                float factor) {
  const int words = shape_.vocabulary, width = shape_.width;
  Tensor logits_gradient(device_, step.probabilities.count());
  WordLossesBackward(step.probabilities.data(), targets, lengths, number, factor, logits_gradient.data(), rows, words);
  step.probabilities.Reset();
  AddWeightGradient(device_, parameters_[out_weights_], step.attended.out.data(), logits_gradient.data(), rows, width,
                    words);
  AddBiasGradient(device_, parameters_[out_bias_], logits_gradient.data(), rows, words);
  const int slices = std::min(kSlices, words);
  Tensor workspace(device_, Elements(rows, width) * slices);
  MatMulTransposedBSliced(logits_gradient.data(), parameters_[out_weights_].value.data(), workspace.data(), rows, width,
                          words, slices);
  logits_gradient.Reset();
  Tensor gradient(device_, Elements(rows, width));
  SumSlices(workspace.data(), gradient.data(), slices, gradient.count());
  return gradient;
}

Seq2Seq::DecoderGradients Seq2Seq::DecoderBackward(DeviceSentences& sentences, float weight, Pass& pass) {
  const int rows = sentences.rows;
  const int64_t state = Elements(rows, shape_.width);
  const float factor = weight / static_cast<float>(rows);
  DecoderGradients gradients;
  gradients.memory = Tensor(device_, pass.encoded.memory.states.count());
  Fill(gradients.memory.data(), gradients.memory.count(), 0.0f);
  gradients.state = decoder_.StartBackward(rows);
  Tensor words_gradient(device_, pass.words.count());
  for (int step = sentences.target_steps - 1; step >= 0; --step) {
    DecoderStep now = std::move(pass.decoded.back());
    pass.decoded.pop_back();
    const StackStep& previous = pass.decoded.empty() ? pass.encoded.states.back() : pass.decoded.back().layers;
    Tensor gradient = ProjectBackward(now, sentences.targets.data() + Elements(rows, step),
                                      sentences.target_lengths.data(), step, rows, factor);
    gradient = attention_.Backward(now.layers.back().hidden.data(), std::move(now.attended), std::move(gradient),
                                   pass.encoded.memory, gradients.memory);
    gradient = decoder_.StepBackward(pass.words.data() + step * state, previous, std::move(now.layers),
                                     std::move(gradient), nullptr, step, rows, gradients.state);
    Copy(gradient.data(), words_gradient.data() + step * state, state);
  }
  pass.words.Reset();
  sentences.targets.Reset();
  sentences.target_lengths.Reset();
  AddEmbeddingGradient(target_table_, std::move(words_gradient), std::move(sentences.input_index));
  return gradients;
}

void Seq2Seq::EncoderBackward(DeviceSentences& sentences, DecoderGradients gradients, Encoded encoded) {
  const int rows = sentences.rows;
  const int64_t state = Elements(rows, shape_.width);
  Tensor words_gradient(device_, encoded.words.count());
  for (int step = sentences.source_steps - 1; step >= 0; --step) {
    StackStep now = std::move(encoded.states.back());
    encoded.states.pop_back();
    Tensor top_gradient(device_, state);
    Copy(gradients.memory.data() + step * state, top_gradient.data(), state);
    const Tensor gradient =
        encoder_.StepBackward(encoded.words.data() + step * state, encoded.states.back(), std::move(now),
                              std::move(top_gradient), sentences.source_lengths.data(), step, rows, gradients.state);
    Copy(gradient.data(), words_gradient.data() + step * state, state);
  }
  encoded.words.Reset();
  AddEmbeddingGradient(source_table_, std::move(words_gradient), std::move(sentences.source_index));
}

Tensor Seq2Seq::LossAndGradients(DeviceSentences sentences, float weight) {
  Pass pass;
  Tensor loss = Forward(sentences, weight, true, pass);
  sentences.source.Reset();
  sentences.inputs.Reset();
  DecoderGradients gradients = DecoderBackward(sentences, weight, pass);
  pass.encoded.memory.states.Reset();
  EncoderBackward(sentences, std::move(gradients), std::move(pass.encoded));
  return loss;
}

Labels Seq2Seq::NextWords(const Tensor& logits, int rows) const {
  Labels best(device_, Elements(rows, Chunks(shape_.vocabulary)));
  ChunkBest(logits.data(), best.data(), rows, shape_.vocabulary);
  Labels words(device_, rows);
  BestWords(logits.data(), best.data(), words.data(), rows, shape_.vocabulary);
  return words;
}

std::vector<int32_t> Seq2Seq::Generate(DeviceSentences sentences, int steps, bool stop_at_end) {
  const int rows = sentences.rows;
  Encoded encoded = Encode(sentences, false);
  sentences.source.Reset();
  StackStep state = std::move(encoded.states.back());
  Labels generated(device_, Elements(rows, steps));
  Labels words(device_, std::vector<int32_t>(static_cast<size_t>(rows), kBegin));
  std::vector<bool> ended(static_cast<size_t>(rows), false);
  int done = 0;
  while (done < steps && std::find(ended.begin(), ended.end(), false) != ended.end()) {
    const Tensor embedded = EmbedWords(target_table_, words.data(), rows);
    state = decoder_.Step(embedded.data(), state, nullptr, done, rows, false);
    const Attention::Saved attended = attention_.Forward(state.back().hidden.data(), encoded.memory);
    words = NextWords(Project(attended.out, rows), rows);
    CopyWords(words.data(), generated.data() + Elements(rows, done), rows);
    ++done;
    if (!stop_at_end) continue;
    const std::vector<int32_t> now = words.ToHost();
    for (size_t row = 0; row < now.size(); ++row) ended[row] = ended[row] || now[row] == kEnd;
  }
  std::vector<int32_t> result(static_cast<size_t>(Elements(rows, steps)), kPadding);
  device_.CopyOut(result.data(), generated.data(), static_cast<size_t>(Elements(rows, done)) * sizeof(int32_t));
  return result;
}

}  // namespace hotpack::train
