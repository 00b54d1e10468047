// The encoder of a Transformer (Vaswani et al. 2017) with a classifier of every position, as language models are
// trained.
//
//   x ─┬─ q, k, v ─ softmax(q·kᵀ) ─ dropout ─ ·v ─ fully connected ─ dropout ─ (+) ─ norm ─► y
//      └────────────────────────────────────────────────────────────────────────┘
//   y ─┬─ hidden, relu, back, dropout ─ (+) ─ norm ─►
//      └─────────────────────────────────┘
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/networks/generator.h"
#include "remat/networks/network.h"

namespace hotpack::remat {

struct TransformerOptions {
  int64_t layers = 6;
  int64_t width = 512;  // a multiple of `heads`; InvalidArgument otherwise
  int64_t heads = 8;
  int64_t hidden = 2048;
  int64_t steps = 256;  // length of a sequence
  int64_t batch = 32;
  int64_t vocabulary = 32000;
};
absl::StatusOr<Network> Transformer(const TransformerOptions& options);

std::vector<Generator> TransformerGenerators();

}  // namespace hotpack::remat
