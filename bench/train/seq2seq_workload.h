// The translation task with its model, as the training loop sees them.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "bench/train/seq2seq_model.h"
#include "bench/train/seq2seq_task.h"
#include "bench/train/workload.h"

namespace hotpack::train {

struct Seq2SeqOptions {
  Seq2SeqShape shape;
  int max_words = 1;          // of a source sentence before it is cut, 1 .. generated_words − 1
  int generated_words = 100;  // an inference's steps (Sekiyama et al. 2018, section 5.3)
  bool stop_at_end = false;   // end an inference when every sentence has ended
};

class Seq2SeqWorkload : public Workload {
 public:
  Seq2SeqWorkload(Device& device, const Seq2SeqOptions& options, uint64_t seed);

  std::vector<Parameter>& parameters() override { return model_.parameters(); }
  void Prefetch(int64_t number, int rows) override;
  Tensor LossAndGradients(float weight) override { return model_.LossAndGradients(TakeSentences(), weight); }
  Tensor Loss() override { return model_.Loss(TakeSentences(), 1.0f); }
  // The share of words (end words included) that stand at their right place in the greedy translation.
  double Evaluate(int64_t number, int rows) override;
  std::string MeritName() const override { return "right words"; }

 private:
  DeviceSentences TakeSentences();

  Device& device_;
  Seq2SeqOptions options_;
  TranslationTask task_;
  Seq2Seq model_;
  std::deque<DeviceSentences> prefetched_;
};

}  // namespace hotpack::train
