// Lloyd's iterations of k-means, as the DQN planner's paper lists them. There is no gradient; contents pass from
// iteration to iteration.
//
//   points ─┬─ norms ──────────────┐
//           └─ product ─ distances (+) ─ nearest ─ labels ─ means ─ centroids ─► the next iteration
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/core/graph.h"
#include "remat/networks/device.h"
#include "remat/networks/generator.h"

namespace hotpack::remat {

struct KMeansOptions {
  int64_t points = 1'000'000;
  int64_t dimensions = 64;
  int64_t clusters = 256;
  int64_t iterations = 20;
  Device device = {};
};
// Returns the graph. Points are given and kept, as weights are. The last labels and centroids are kept as well. All
// operators are of the forward pass. Returns InvalidArgument if a storage has more than 2^62 bytes.
absl::StatusOr<Graph> KMeans(const KMeansOptions& options);

std::vector<Generator> KMeansGenerators();

}  // namespace hotpack::remat
