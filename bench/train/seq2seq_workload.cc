#include "bench/train/seq2seq_workload.h"

#include <cstddef>
#include <stdexcept>
#include <utility>

namespace hotpack::train {

Seq2SeqWorkload::Seq2SeqWorkload(Device& device, const Seq2SeqOptions& options, uint64_t seed)
    : device_(device),
      options_(options),
      task_(seed, options.shape.vocabulary, options.max_words),
      model_(device, options.shape, seed) {}

void Seq2SeqWorkload::Prefetch(int64_t number, int rows) {
  prefetched_.push_back(StartSentences(device_, task_.MakeBatch(number, rows), options_.shape.vocabulary));
}

DeviceSentences Seq2SeqWorkload::TakeSentences() {
  if (prefetched_.empty()) throw std::logic_error("no batch was prefetched");
  DeviceSentences sentences = std::move(prefetched_.front());
  prefetched_.pop_front();
  device_.WaitForCopies();
  return sentences;
}

double Seq2SeqWorkload::Evaluate(int64_t number, int rows) {
  const SentenceBatch batch = task_.MakeBatch(number, rows);
  DeviceSentences sentences = StartSources(device_, batch);
  device_.WaitForCopies();
  const std::vector<int32_t> words =
      model_.Generate(std::move(sentences), options_.generated_words, options_.stop_at_end);
  int64_t right = 0, all = 0;
  for (int step = 0; step < batch.target_steps; ++step) {
    for (int row = 0; row < rows; ++row) {
      if (step >= batch.target_lengths[static_cast<size_t>(row)]) continue;
      const size_t at = static_cast<size_t>(step) * static_cast<size_t>(rows) + static_cast<size_t>(row);
      right += words[at] == batch.targets[at];
      ++all;
    }
  }
  return static_cast<double>(right) / static_cast<double>(all);
}

}  // namespace hotpack::train
