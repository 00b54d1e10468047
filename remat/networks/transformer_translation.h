// Translation by a Transformer (Vaswani et al. 2017): encoder and decoder, as the toolkit Sockeye builds them. There is
// a normalisation before each part and a dropout behind it, and dropouts in the attention and in the hidden layer.
//
//   x ─┬─ norm ─ attention ─ dropout ─ (+) ─► y
//      └────────────────────────────────┘
//   y ─┬─ norm ─ attention to the source ─ dropout ─ (+) ─► z          only in the decoder; else z is y
//      └──────────────────────────────────────────────┘
//   z ─┬─ norm ─ hidden relu dropout ─ back ─ dropout ─ (+) ─►
//      └─────────────────────────────────────────────────┘
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/networks/generator.h"
#include "remat/networks/network.h"

namespace hotpack::remat {

struct TransformerTranslationOptions {
  int64_t layers = 6;   // of encoder and of decoder each
  int64_t width = 512;  // a multiple of `heads`; InvalidArgument otherwise
  int64_t heads = 8;
  int64_t hidden = 2048;
  int64_t steps = 64;  // words of source and of target
  int64_t batch = 64;
  int64_t source_words = 32000;
  int64_t target_words = 32000;
};
absl::StatusOr<Network> TransformerTranslation(const TransformerTranslationOptions& options);

std::vector<Generator> TransformerTranslationGenerators();

}  // namespace hotpack::remat
