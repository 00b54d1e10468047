#include "bench/train/seq2seq_task.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "bench/train/random.h"

namespace hotpack::train {
namespace {

using Sentence = std::vector<int32_t>;

// Returns padded sentences, time-major.
std::vector<int32_t> Pad(const std::vector<Sentence>& sentences, int steps) {
  const size_t rows = sentences.size();
  std::vector<int32_t> words(static_cast<size_t>(steps) * rows, kPadding);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t step = 0; step < sentences[row].size(); ++step) words[step * rows + row] = sentences[row][step];
  }
  return words;
}

std::vector<int32_t> Lengths(const std::vector<Sentence>& sentences) {
  std::vector<int32_t> lengths;
  for (const Sentence& sentence : sentences) lengths.push_back(static_cast<int32_t>(sentence.size()));
  return lengths;
}

}  // namespace

WordIndex MakeWordIndex(const std::vector<int32_t>& words, const std::vector<int32_t>& lengths, int vocabulary) {
  const size_t rows = lengths.size();
  const auto counts = [&](size_t position) { return static_cast<int32_t>(position / rows) < lengths[position % rows]; };
  WordIndex index;
  index.offsets.assign(static_cast<size_t>(vocabulary) + 1, 0);
  index.positions.assign(words.size(), 0);  // the last ones are unused: the size depends on the batch's shape alone
  for (size_t position = 0; position < words.size(); ++position) {
    if (counts(position)) ++index.offsets[static_cast<size_t>(words[position]) + 1];
  }
  for (size_t word = 0; word < static_cast<size_t>(vocabulary); ++word) index.offsets[word + 1] += index.offsets[word];
  std::vector<int32_t> next(index.offsets.begin(), index.offsets.end() - 1);
  for (size_t position = 0; position < words.size(); ++position) {
    if (!counts(position)) continue;
    int32_t& at = next[static_cast<size_t>(words[position])];
    index.positions[static_cast<size_t>(at++)] = static_cast<int32_t>(position);
  }
  return index;
}

TranslationTask::TranslationTask(uint64_t seed, int vocabulary, int max_words)
    : seed_(seed), vocabulary_(vocabulary), max_words_(max_words) {
  SplitMix64 random(seed ^ 0xc3a5c85c97cb3127u);
  for (int32_t word = kFirstWord; word < vocabulary; ++word) counterpart_.push_back(word);
  for (size_t i = counterpart_.size(); i > 1; --i) {  // Fisher, Yates
    std::swap(counterpart_[i - 1], counterpart_[static_cast<size_t>(random.Below(static_cast<int>(i)))]);
  }
}

SentenceBatch TranslationTask::MakeBatch(int64_t number, int rows) const {
  SplitMix64 random(seed_ + static_cast<uint64_t>(number) * 0xd6e8feb86659fd93u);
  const int longest = 1 + random.Below(max_words_);
  const int shortest = (longest + 1) / 2;
  std::vector<Sentence> sources, inputs, targets;
  for (int row = 0; row < rows; ++row) {
    int words = shortest + random.Below(longest - shortest + 1);
    if (number > 0) words = std::min(words, kTrainingCut);
    Sentence source;
    for (int w = 0; w < words; ++w) {
      const double unit = random.Double();  // squared: low words are frequent, as in a language
      source.push_back(kFirstWord + static_cast<int32_t>(unit * unit * (vocabulary_ - kFirstWord)));
    }
    Sentence target;
    for (size_t w = source.size(); w-- > 0;)
      target.push_back(counterpart_[static_cast<size_t>(source[w] - kFirstWord)]);
    Sentence& input = inputs.emplace_back(target);
    input.insert(input.begin(), kBegin);
    target.push_back(kEnd);
    sources.push_back(std::move(source));
    targets.push_back(std::move(target));
  }
  SentenceBatch batch;
  batch.rows = rows;
  batch.source_lengths = Lengths(sources);
  batch.target_lengths = Lengths(targets);
  batch.source_steps = *std::max_element(batch.source_lengths.begin(), batch.source_lengths.end());
  batch.target_steps = *std::max_element(batch.target_lengths.begin(), batch.target_lengths.end());
  batch.source = Pad(sources, batch.source_steps);
  batch.inputs = Pad(inputs, batch.target_steps);
  batch.targets = Pad(targets, batch.target_steps);
  return batch;
}

}  // namespace hotpack::train
