// Translation by recurrent networks with attention (Bahdanau et al. 2014, Luong et al. 2015), as the toolkit Sockeye
// builds it, which Echo's experiments train.
//
//   source words ─ embedding ─ LSTM both ways ─ LSTM ─ ... ──► source states ─ fully connected ──► keys      [batch, steps, hidden]
//                                                                   │                                │
//   target word ─┬─ LSTM ─ LSTM ─► query ─ fully connected ────────(+) over all steps ◄──────────────┘
//   hidden before┘                   │      tanh ─ fully connected 1 ─ softmax = weights      T² results of that size in all
//        ▲                           │                                          │
//        └── tanh ─ fully connected ─┴── context = weights · source states ◄────┘
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/networks/generator.h"
#include "remat/networks/network.h"

namespace hotpack::remat {

// As published for English-Vietnamese: the training benchmarks of Zhu et al. 2018 ("Benchmarking and analyzing deep
// neural network training", their script for Sockeye 1.5 and IWSLT15), with Sockeye's own default of 100 words a
// sentence, and the vocabularies of that data set.
struct TranslationOptions {
  int64_t layers = 2;    // of encoder and of decoder each; the encoder's first one goes both ways with half the width
  int64_t hidden = 512;  // even
  int64_t embedding = 512;
  int64_t steps = 100;  // words of source and target: the longest bucket, whose memory is what training needs
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
