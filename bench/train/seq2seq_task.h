// A generated translation task: a sentence's words, each replaced by its counterpart, in reverse order.
#pragma once

#include <cstdint>
#include <vector>

namespace hotpack::train {

// Special words; the others are 3 .. vocabulary − 1, in both languages.
inline constexpr int32_t kPadding = 0;
inline constexpr int32_t kBegin = 1;
inline constexpr int32_t kEnd = 2;
inline constexpr int32_t kFirstWord = 3;

inline constexpr int kTrainingCut =
    50;  // words at which training sentences are cut (Sekiyama et al. 2018, section 5.1)

// Sentences of one batch, time-major: [step, row]. Padding follows a row's last word.
struct SentenceBatch {
  int rows = 0;
  int source_steps = 0;  // the longest source sentence
  int target_steps = 0;  // the longest target sentence with its end word
  std::vector<int32_t> source;
  std::vector<int32_t> source_lengths;  // [row], ≥ 1
  std::vector<int32_t> inputs;          // of the decoder under teacher forcing: kBegin, then the target's words
  std::vector<int32_t> targets;         // the target's words, then kEnd
  std::vector<int32_t> target_lengths;  // [row], with kEnd
};

// The places of each word in a batch, without padding: positions[offsets[word]] .. positions[offsets[word + 1] − 1],
// ascending. It serves to gather an embedding's gradient by word.
struct WordIndex {
  std::vector<int32_t> offsets;  // [vocabulary + 1]
  std::vector<int32_t> positions;
};
WordIndex MakeWordIndex(const std::vector<int32_t>& words, const std::vector<int32_t>& lengths, int vocabulary);

// A pure function of (seed, number): the same batches on every machine. Thread-safe.
class TranslationTask {
 public:
  TranslationTask(uint64_t seed, int vocabulary, int max_words);  // vocabulary > kFirstWord, max_words ≥ 1
  // Negative numbers are for evaluation and never meet the training ones. A batch's sentences are of similar length
  // (half of the longest at least, as bucketed data are), and the longest differs from batch to batch.
  SentenceBatch MakeBatch(int64_t number, int rows) const;

 private:
  uint64_t seed_;
  int vocabulary_;
  int max_words_;
  std::vector<int32_t> counterpart_;  // [word − kFirstWord]
};

}  // namespace hotpack::train
