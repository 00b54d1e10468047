// The exact model of dynamic storage allocation as a mixed integer program (Sekiyama 2018, §3.1, equations 1 to 6).
//
//   min u                              (1)    u     height
//   x_i + w_i ≤ u                      (2)    x_i   offset of block i
//   x_i + w_i ≤ x_j + z_ij W           (3)    z_ij  0: block i is below block j, 1: it is above
//   x_j + w_j ≤ x_i + (1 - z_ij) W     (4)    for every pair i < j that is resident together
//   0 ≤ u ≤ W                          (5)
//   x_i ≥ 0                            (6)
//
// Extensions for instances, which the paper does not have:
// - An aligned block has x_i = a_i k_i with an integer k_i.
// - A pinned block has a fixed x_i.
// - Two blocks with several residency intervals are a pair, with one z_ij, if any two of their intervals overlap.
// - A pair of pinned blocks needs no rows (CheckInstance() refuses colliding pins).
// docs/research/exact_model.md gives the reasons.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "packer/types.h"

namespace hotpack {

inline constexpr int64_t kModelPairLimit = 2'000'000;             // 224 MB of LP, 426 MB of MPS
inline constexpr Bytes kPublishedMemory = Bytes{16} << 30;        // the device of the paper's experiments
inline constexpr int64_t kLargestModelNumber = int64_t{1} << 53;  // exact as a double, the number type of solvers
inline constexpr double kIntegralityTolerance = 1e-6;             // the usual setting of solvers

struct ModelOptions {
  bool as_published = false;        // bytes unchanged, W = memory, and only equations (1) to (6)
  Bytes memory = kPublishedMemory;  // W as published: the available memory; only with as_published
  int64_t pair_limit = kModelPairLimit;
};

// One block in units of ExactModel::unit bytes.
struct ModelBlock {
  int64_t size = 0;
  int64_t alignment = 1;  // 1: x_i does not depend on k_i
  int64_t pinned = kNotPinned;
  int64_t most = 0;  // x_i ≤ most; as published there is no such bound, and this is W
};

struct ExactModel {
  bool as_published = false;
  Bytes unit = 1;           // bytes per unit of x_i, u and W
  int64_t big = 0;          // W, in units
  int64_t lower_bound = 0;  // the row u ≥ lower_bound, in units; 0: no such row
  std::vector<ModelBlock> blocks;
  std::vector<std::pair<int32_t, int32_t>> pairs;  // i < j, ascending: the pairs that have a z_ij
};

// Returns HeightUnit() of the instance, in bytes (packer/bounds.h); 1 for no blocks. O(n log n).
Bytes ModelUnit(const Instance& instance);

// Builds the model of `instance`. Default: sizes in units of ModelUnit(), W = height of the better of best-fit and
// first-fit, x_i ≤ W - w_i, and the row u ≥ LowerBound(). Deterministic. O(n log n + pairs log pairs) time, 8 bytes per
// pair. Thread-safe. Errors, InvalidArgument with one line:
// - no blocks, or a malformed instance;
// - more overlapping pairs of residency intervals than the limit;
// - W as published below the lower bound;
// - W above kLargestModelNumber.
absl::StatusOr<ExactModel> BuildExactModel(const Instance& instance, const ModelOptions& options = {});

// Returns the largest overlap, in units, that solvers with the usual integrality tolerance do not notice: a z_ij of
// 1e-6 instead of 0 takes 1e-6 W from row (3).
double ToleratedOverlap(int64_t big);

}  // namespace hotpack
