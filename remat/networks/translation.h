// Translation by recurrent networks with attention (Bahdanau et al. 2014, Luong et al. 2015), as the toolkit Sockeye
// builds it and Echo's experiments train it.
//
//   source words ─ embedding ─ LSTM both ways ─ LSTM ─ ... ──► source states ─ fully connected ──► keys
//                                                                   │                                │
//   target word ─┬─ LSTM ─ LSTM ─► query ─ fully connected ────────(+) over all steps ◄──────────────┘
//   hidden before┘                   │      tanh ─ fully connected 1 ─ softmax = weights
//        ▲                           │                                          │
//        └── tanh ─ fully connected ─┴── context = weights · source states ◄────┘
//
// The keys have the shape [batch, steps, hidden]. The sum and the tanh of each target step have the same shape, so
// their memory grows with T².
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/networks/generator.h"
#include "remat/networks/network.h"

namespace hotpack::remat {

// The defaults are those published for English-Vietnamese: the training benchmarks of Zhu et al. 2018 ("Benchmarking
// and analyzing deep neural network training", their script for Sockeye 1.5 and IWSLT15). Sockeye's own default of 100
// words per sentence and the vocabularies of that data set are added.
struct TranslationOptions {
  // Of encoder and of decoder each. The encoder's first layer goes both ways with half the width.
  int64_t layers = 2;
  int64_t hidden = 512;  // even
  int64_t embedding = 512;
  int64_t steps = 100;  // words of source and target: the longest bucket, which determines the memory
  int64_t batch = 128;
  int64_t source_words = 17191;
  int64_t target_words = 7709;
  bool normalise = false;  // layer normalisation before the attention's tanh
};

enum class TranslationPart : uint8_t { kOther, kRecurrent, kAttention };

struct TranslationNetwork {
  Network network;
  std::vector<TranslationPart> part_of;  // by layer
};

absl::StatusOr<TranslationNetwork> Translation(const TranslationOptions& options);

std::vector<Generator> TranslationGenerators();

}  // namespace hotpack::remat
