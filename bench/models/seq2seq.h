// Sequence to sequence as in Chainer 3's example of that name: embeddings, an LSTM encoder and decoder of cuDNN, and
// one matrix product for all words' scores (Sekiyama 2018, §5.3). Sentences are not padded, so sizes and the number of
// requests differ from mini-batch to mini-batch.
#pragma once

#include <cstdint>

#include "profiler/event.h"

namespace hotpack::bench {

struct Seq2SeqSize {
  int64_t vocabulary = 40000;  // words of each language, <eos> and <unk> included
  int64_t units = 1024;
  int64_t layers = 3;
  // Training: sentences of 1 to 49 words, drawn because the corpus is not available.
  int64_t longest = 49;
  int64_t generated = 100;  // words that an inference generates
};

// Records iterations of `batch` sentence pairs, drawn from a fixed seed, the same on every machine. Uses Adam, with two
// states per weight.
Trace RecordSeq2SeqTraining(const Seq2SeqSize& size, int64_t batch, int iterations);

// Records the translation of one sentence per iteration, word by word.
Trace RecordSeq2SeqInference(const Seq2SeqSize& size, int iterations);

}  // namespace hotpack::bench
