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
  Bytes workspace = 0;  // of a convolution, at most
  // Stochastic depth (Huang et al. 2016): block l of L is there with probability 1 - l / L · (1 - last_survival); one
  // draw by `seed`. Of a block that is not there a stage's shortcut is left. 1: all are there.
  double last_survival = 1;
  uint64_t seed = 1;
};

// Blocks of each stage. 50, 101, 152, 200: He's tables (depth: the layers with weights on the way, 3 · blocks + 2). Any
// other n counts every convolution, shortcuts as well: n = 3 · blocks + 5; the first and the last stage have 3 blocks
// (fewer than 12 blocks: a quarter of them), and of the rest two fifths, rounded up, are the second's: 1007 is 3, 132,
// 196, 3. InvalidArgument for an n below 17 or not of that form.
absl::StatusOr<std::array<int64_t, 4>> ResNetStages(int64_t n);

absl::StatusOr<Network> ResNet(const ResNetOptions& options);

std::vector<Generator> ResidualGenerators();

}  // namespace hotpack::remat
