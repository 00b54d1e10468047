// Sequence to sequence as Chainer 3's example of that name: embeddings, an LSTM encoder and decoder of cuDNN, one
// matrix product for all words' scores (Sekiyama 2018, §5.3). A sentence is as long as it is, so sizes differ from
// mini-batch to mini-batch, and so does the number of requests.
#pragma once

#include <cstdint>

#include "profiler/event.h"

namespace hotpack::bench {

struct Seq2SeqSize {
  int64_t vocabulary = 40000;  // words, and <eos>, <unk> among them, of each language
  int64_t units = 1024;
  int64_t layers = 3;
  int64_t longest = 49;     // training: sentences of 1 to 49 words; drawn, for the corpus is not here
  int64_t generated = 100;  // words that an inference generates
};

// `batch` sentence pairs a marked iteration, drawn from a fixed seed; the same on every machine. With Adam, two states
// a weight.
Trace RecordSeq2SeqTraining(const Seq2SeqSize& size, int64_t batch, int iterations);

// One sentence an iteration is translated, word by word.
Trace RecordSeq2SeqInference(const Seq2SeqSize& size, int iterations);

}  // namespace hotpack::bench
