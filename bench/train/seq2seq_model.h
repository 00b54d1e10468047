// An LSTM sequence-to-sequence model with attention (Sutskever et al. 2014; Luong et al. 2015), trained by teacher
// forcing and backward through time. It runs as an eager framework would run it without its own allocator.
//
//   tensor                                     allocated               released
//   weights                                    before step 1           at the end
//   Adam's two moments                         during step 1           at the end
//   gradients                                  in the backward pass    by ZeroGradients() of the next step
//   inputs                                     by StartSentences()     at their last use in their batch
//   embedded words, encoder's memory           forward                 when the backward pass is through with them
//   gates, states, attention, probabilities    forward, each time step in that time step's backward pass
//   a time step's contribution to a gradient   backward, each one      when it is added: a few calls later
//   everything else                            when produced           a few calls later
//
// The sizes of embedded words, memory and attention weights follow the batch's longest sentence. So does the number of
// requests.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "bench/train/seq2seq_layers.h"
#include "bench/train/seq2seq_task.h"
#include "bench/train/tensor.h"

namespace hotpack::train {

struct Seq2SeqShape {
  int vocabulary = 0;  // words of either language, > kFirstWord
  int width = 0;       // of embeddings and hidden states, ≥ 1
  int layers = 0;      // of encoder and decoder each, ≥ 1
  float gain = 1.0f;   // of the initial weights
};
// For checks of the gradients. So small a model needs larger weights than usual, or its attention passes hardly
// anything.
inline constexpr Seq2SeqShape kTinySeq2Seq = {.vocabulary = 7, .width = 4, .layers = 2, .gain = 4.0f};

// A batch on its way to the device; may be used after Device::WaitForCopies().
struct DeviceSentences {
  struct Index {
    Labels offsets, positions;
  };
  int rows = 0;
  int source_steps = 0;
  int target_steps = 0;
  Labels source, source_lengths;
  Labels inputs, targets, target_lengths;  // empty if words are only generated
  Index source_index, input_index;         // likewise
};
DeviceSentences StartSentences(Device& device, const SentenceBatch& batch, int vocabulary);
DeviceSentences StartSources(Device& device, const SentenceBatch& batch);

// Not thread-safe. Functions throw what Device and the kernels throw.
class Seq2Seq {
 public:
  Seq2Seq(Device& device, const Seq2SeqShape& shape, uint64_t seed);
  Seq2Seq(const Seq2Seq&) = delete;  // its layers refer to its parameters
  Seq2Seq& operator=(const Seq2Seq&) = delete;

  std::vector<Parameter>& parameters() { return parameters_; }

  // Cross entropy: mean over the rows of each row's mean over its words, times `weight`; one element in device memory.
  Tensor Loss(DeviceSentences sentences, float weight);
  Tensor LossAndGradients(DeviceSentences sentences, float weight);  // gradients are added

  // Returns the best next words of `steps` steps: [step, row]. With `stop_at_end` it stops when each row has had its
  // kEnd, which costs a wait for the device per step. After its kEnd a row has kPadding. The words stay on the device
  // from step to step.
  std::vector<int32_t> Generate(DeviceSentences sentences, int steps, bool stop_at_end);

 private:
  struct Encoded {
    Tensor words;  // embedded
    Memory memory;
    std::deque<StackStep> states;  // before the first step, and after each; without training only the last
  };
  struct DecoderStep {
    StackStep layers;
    Attention::Saved attended;
    Tensor probabilities;
  };
  struct Pass {
    Encoded encoded;
    Tensor words;  // the decoder's inputs, embedded
    std::vector<DecoderStep> decoded;
  };
  struct DecoderGradients {
    Tensor memory;
    CarriedGradients state;  // of the encoder's last state
  };

  Tensor EmbedWords(size_t table, const int32_t* words, int64_t count) const;
  void AddEmbeddingGradient(size_t table, Tensor gradient, DeviceSentences::Index index);
  Encoded Encode(const DeviceSentences& sentences, bool training) const;
  Tensor Project(const Tensor& attended, int rows) const;
  void WordLoss(const Tensor& logits, const DeviceSentences& sentences, int step, float factor, Tensor& losses,
                Tensor* probabilities) const;
  Tensor Forward(const DeviceSentences& sentences, float weight, bool training, Pass& pass) const;
  Tensor ProjectBackward(DecoderStep& step, const int32_t* targets, const int32_t* lengths, int number, int rows,
                         float factor);
  DecoderGradients DecoderBackward(DeviceSentences& sentences, float weight, Pass& pass);
  void EncoderBackward(DeviceSentences& sentences, DecoderGradients gradients, Encoded encoded);
  Labels NextWords(const Tensor& logits, int rows) const;

  Device& device_;
  Seq2SeqShape shape_;
  std::vector<Parameter> parameters_;
  size_t source_table_, target_table_;
  LstmStack encoder_, decoder_;
  Attention attention_;
  size_t out_weights_, out_bias_;
};

}  // namespace hotpack::train
