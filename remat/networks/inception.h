// Inception v3 (Szegedy, Vanhoucke, Ioffe, Shlens, Wojna 2015, "Rethinking the Inception architecture"), without its
// auxiliary classifier.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/networks/generator.h"
#include "remat/networks/network.h"

namespace hotpack::remat {

struct InceptionOptions {
  int64_t batch = 32;
  int64_t image = 299;  // ≥ 75, so that poolings do not reduce it to nothing
  int64_t classes = 1000;
  Bytes workspace = 0;  // the most of one convolution
};
absl::StatusOr<Network> Inception(const InceptionOptions& options);

std::vector<Generator> InceptionGenerators();

}  // namespace hotpack::remat
