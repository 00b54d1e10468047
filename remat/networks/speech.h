// Speech recognition by convolutions and recurrent layers in both directions (Amodei et al. 2015, "Deep Speech 2").
//
//   spectrogram ─ conv bn relu ─ conv bn relu ─ steps ─┬─ GRU ─ GRU ─ ... forwards  ─┬─ concat ─► x
//                                                      └─ GRU ─ GRU ─ ... backwards ─┘
//   x ─ fully connected bn relu ─ fully connected ─ softmax
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/networks/generator.h"
#include "remat/networks/network.h"

namespace hotpack::remat {

// The defaults are those of MXNet's example (example/speech_recognition, deepspeech.cfg). Convolutions have no padding,
// sizes of 11 × 41 and 11 × 21, strides of 2 × 2 and 1 × 2, and 32 channels. Each direction is its own stack, with
// batch normalisation of the gates' inputs at each step.
struct SpeechOptions {
  int64_t layers = 5;
  int64_t hidden = 1760;
  int64_t frames = 800;  // of the spectrogram, the longest bucket; ≥ 33
  int64_t bands = 161;   // ≥ 81
  int64_t batch = 24;
  int64_t classes = 29;  // characters and the blank
};
absl::StatusOr<Network> Speech(const SpeechOptions& options);

std::vector<Generator> SpeechGenerators();

}  // namespace hotpack::remat
