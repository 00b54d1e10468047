#include "bench/models/seq2seq.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "bench/models/layers.h"
#include "bench/models/tape.h"

namespace hotpack::bench {
namespace {

constexpr Bytes kElement = 4;
// Units per word and layer that cuDNN's LSTM keeps for the backward pass (four gates, cell state, dropped-out input).
// *Inferred*: cuDNN does not document it.
constexpr int64_t kReserved = 6;

using Lengths = std::vector<int64_t>;

int64_t Sum(const Lengths& lengths) { return std::accumulate(lengths.begin(), lengths.end(), int64_t{0}); }

class Run {
 public:
  explicit Run(const Seq2SeqSize& size) : size_(size), random_(1) {
    const int64_t lstm = 8 * size.units * size.units + 8 * size.units;  // eight matrices and biases per layer
    for (int half = 0; half < 2; ++half) {
      weights_.push_back(size.vocabulary * size.units);
      // The link has one block for each matrix and each bias.
      for (int64_t i = 0; i < 8 * size.layers; ++i) {
        weights_.push_back(size.units * size.units);
        weights_.push_back(size.units);
      }
    }
    packed_ = lstm * size.layers;
    weights_.push_back(size.vocabulary * size.units);
    weights_.push_back(size.vocabulary);
    for (int64_t elements : weights_) Allocate(elements);
  }

  void Train(int64_t batch) {
    const Lengths sources = Draw(batch);
    Lengths targets = Draw(batch);
    tape_.Mark();
    Keep(Sum(sources));  // the mini-batch, one copy for each side
    Keep(Sum(targets));
    for (int64_t& words : targets) ++words;  // with <eos> before or behind it
    for (int twice = 0; twice < 2; ++twice) {
      for (int64_t words : targets) Keep(words);
    }
    Embed(sources);
    Embed(targets);
    Keep(size_.layers * batch * size_.units);  // the encoder's first states, zero
    Keep(size_.layers * batch * size_.units);
    Lstm(sources, true);
    Lstm(targets, true);
    const int64_t words = Sum(targets);
    Keep(words * size_.units);       // the concatenated outputs of the decoder
    Keep(words);                     // the expected words
    Keep(words * size_.vocabulary);  // scores
    Use(words * size_.vocabulary);   // their logarithms, for the loss
    Keep(words * size_.vocabulary);  // probabilities
    Keep(words);                     // losses
    Keep(1);
    ReleaseAll(&gradients_);
    Backward(sources, targets);
    ReleaseAll(&kept_);
    if (states_) return;
    for (int twice = 0; twice < 2; ++twice) {
      for (int64_t elements : weights_) Allocate(elements);
    }
    states_ = true;
  }

  // Nothing is kept for a backward pass, so a step's blocks are released when the next step's exist.
  void Translate() {
    const Lengths source = Draw(1);
    tape_.Mark();
    std::vector<uint64_t> before, results;
    Keep(source[0]);
    Embed(source);
    Keep(size_.layers * size_.units);
    Keep(size_.layers * size_.units);
    Lstm(source, false);
    std::swap(before, kept_);
    Keep(1);  // <eos>
    for (int64_t word = 0; word < size_.generated; ++word) {
      Keep(size_.units);  // embedded
      Lstm({1}, false);
      Keep(size_.units);
      Keep(size_.vocabulary);  // scores
      Use(2);                  // the best one's number, 64 bits
      results.push_back(Allocate(1));
      ReleaseAll(&before);
      std::swap(before, kept_);
    }
    Use(size_.generated);  // the words in one block, for the copy to the host
    ReleaseAll(&before);
    ReleaseAll(&results);
  }

  Trace End() {
    tape_.Mark();
    return tape_.trace();
  }

 private:
  uint64_t Allocate(int64_t elements) { return tape_.Allocate(kElement * elements); }
  void Use(int64_t elements) { tape_.Use(kElement * elements); }
  void Keep(int64_t elements) { kept_.push_back(Allocate(elements)); }
  void ReleaseAll(std::vector<uint64_t>* blocks) {
    for (uint64_t block : *blocks) tape_.Release(block);
    blocks->clear();
  }

  // Draws lengths, sorted as the LSTM requires.
  Lengths Draw(int64_t batch) {
    Lengths lengths;
    for (int64_t i = 0; i < batch; ++i)
      lengths.push_back(1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(size_.longest)));
    std::sort(lengths.rbegin(), lengths.rend());
    return lengths;
  }

  void Embed(const Lengths& lengths) {
    Keep(Sum(lengths));  // concatenated word numbers; the embedded words are views into one block
    Keep(Sum(lengths) * size_.units);
  }

  // Transposes sentences to time steps, with one block for each step.
  void Transpose(const Lengths& lengths) {
    for (int64_t step = 0; step < lengths[0]; ++step) {
      Keep(size_.units * std::count_if(lengths.begin(), lengths.end(), [step](int64_t words) { return words > step; }));
    }
  }

  void Lstm(const Lengths& lengths, bool training) {
    const auto batch = static_cast<int64_t>(lengths.size());
    const int64_t values = Sum(lengths) * size_.units;
    Transpose(lengths);
    Keep(values);                                // the steps in one block
    const uint64_t weights = Allocate(packed_);  // all matrices in one block, as cuDNN requires
    if (training) kept_.push_back(weights);
    Keep(size_.layers * batch * size_.units);  // last state
    Keep(size_.layers * batch * size_.units);  // last cell
    Keep(values);
    if (training) Keep(kReserved * size_.layers * values);
    tape_.Use(Network::kWorkspace);
    if (!training) tape_.Release(weights);
    for (int64_t words : lengths) Keep(words * size_.units);  // one block for each sentence again
  }

  void Backward(const Lengths& sources, const Lengths& targets) {
    const int64_t words = Sum(targets);
    const uint64_t scores = Allocate(words * size_.vocabulary);
    gradients_.push_back(Allocate(weights_.back()));
    gradients_.push_back(Allocate(weights_[weights_.size() - 2]));
    const uint64_t outputs = Allocate(words * size_.units);
    tape_.Release(scores);
    uint64_t below = LstmBackward(targets, outputs);
    gradients_.push_back(Allocate(weights_[0]));  // the embedding's
    tape_.Release(below);
    below = LstmBackward(sources, Allocate(Sum(sources) * size_.units));
    gradients_.push_back(Allocate(weights_[0]));
    tape_.Release(below);
  }

  // Takes the gradient of the outputs, and returns that of the inputs.
  uint64_t LstmBackward(const Lengths& lengths, uint64_t outputs) {
    const auto batch = static_cast<int64_t>(lengths.size());
    const uint64_t inputs = Allocate(Sum(lengths) * size_.units);
    Use(size_.layers * batch * size_.units);
    Use(size_.layers * batch * size_.units);
    const uint64_t weights = Allocate(packed_);
    tape_.Use(Network::kWorkspace);
    for (int64_t i = 0; i < 8 * size_.layers; ++i) {  // separated again
      gradients_.push_back(Allocate(size_.units * size_.units));
      gradients_.push_back(Allocate(size_.units));
    }
    tape_.Release(weights);
    tape_.Release(outputs);
    return inputs;
  }

  Seq2SeqSize size_;
  std::mt19937_64 random_;
  Tape tape_;
  std::vector<int64_t> weights_;  // elements
  int64_t packed_ = 0;            // elements of an LSTM's weights
  std::vector<uint64_t> kept_, gradients_;
  bool states_ = false;
};

}  // namespace

Trace RecordSeq2SeqTraining(const Seq2SeqSize& size, int64_t batch, int iterations) {
  Run run(size);
  for (int i = 0; i < iterations; ++i) run.Train(batch);
  return run.End();
}

Trace RecordSeq2SeqInference(const Seq2SeqSize& size, int iterations) {
  Run run(size);
  for (int i = 0; i < iterations; ++i) run.Translate();
  return run.End();
}

}  // namespace hotpack::bench
