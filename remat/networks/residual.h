// Residual networks with pre-activation (He, Zhang, Ren, Sun 2016, "Identity mappings in deep residual networks"):
// bottleneck blocks on images.
//
//   x ─┬─ bn relu ─┬─ conv 1×1 w ─ bn relu ─ conv 3×3 w ─ bn relu ─ conv 1×1 4w ─ (+) ─►
//      └───────────┴─ (conv 1×1 4w, in a stage's first block, behind the relu) ────┘
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/networks/generator.h"
#include "remat/networks/network.h"

namespace hotpack::remat {

struct ResNetOptions {
  std::array<int64_t, 4> stages = {3, 4, 6, 3};  // blocks of each, ≥ 1; widths w are 64, 128, 256, 512
  int64_t batch = 32;
  int64_t image = 224;
  int64_t classes = 1000;
  Bytes workspace = 0;  // the most of one convolution
  // Stochastic depth (Huang et al. 2016): block l of L exists with probability 1 - l / L · (1 - last_survival), by one
  // draw with `seed`. A stage's first block without its body keeps the shortcut. 1: all blocks exist.
  double last_survival = 1;
  uint64_t seed = 1;
};

// Returns the blocks of each stage. Returns InvalidArgument for an `n` below 17 or not of these forms:
//   50, 101, 152, 200   He's tables (depth: the layers with weights on the main path, 3 · blocks + 2)
//   3 · blocks + 5      counts every convolution, shortcuts included. The first and the last stage have 3 blocks each
//                       (a quarter, if there are fewer than 12 blocks). The second stage has two fifths of the rest,
//                       rounded up: 1007 is 3, 132, 196, 3
absl::StatusOr<std::array<int64_t, 4>> ResNetStages(int64_t n);

absl::StatusOr<Network> ResNet(const ResNetOptions& options);

std::vector<Generator> ResidualGenerators();

}  // namespace hotpack::remat
