// The packer's one entry point: instance in, placement out.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "packer/types.h"

namespace hotpack {

class WorkClock;  // packer/stop.h

enum class Algorithm {
  kAuto,      // portfolio: everything below, best result; stops at the lower bound
  kBestFit,   // the best-fit heuristic as published (Sekiyama 2018, §3.2)
  kExact,     // the published best-fit to begin with, then exact search alone, unless there are more than 4 million
              // pairs of blocks that meet: for proofs and for research
  kFirstFit,  // blocks in a fixed order of decreasing size, each at its lowest free offset
};

struct PackOptions {
  Algorithm algorithm = Algorithm::kAuto;
  int64_t time_limit_ns = 1'000'000'000;  // anytime: the best placement found by then is returned
  // > 0: only whether there is a placement of at most this height is asked. With kAuto and kExact the answer is kOk and
  // such a height, or kInfeasible, or (undecided when time was up) kOk and a larger height.
  Bytes capacity = 0;
  Bytes target_height = 0;                    // > 0: a height of at most this is as good as any lower one
  uint64_t seed = 1;                          // same seed, one thread, no time-out: same placement
  int threads = 1;                            // ≥ 1
  const std::atomic<bool>* cancel = nullptr;  // set from another thread: return the best found so far
  // null: the time limit is of the machine's clock. Otherwise of this one, which advances with the work done, so that
  // the same instance always has the same placement. One thread works then, whatever `threads` says. Not owned.
  WorkClock* clock = nullptr;
  // Offsets for all blocks to begin from, or null; looked at with kAuto and kExact. Where they are a placement the
  // result is never higher. Where they are none any more (sizes grew, blocks were pinned) blocks are placed anew in the
  // order of these offsets, each as low as it can be. Its `height` is not looked at.
  const Placement* start = nullptr;
};

enum class PackStatus {
  kOk,
  kBadInstance,  // a block with size ≤ 0, no or an empty residency or intervals not ascending and disjoint, alignment <
                 // 1, pinned offset negative (but kNotPinned) or misaligned, or two pinned blocks that collide
  kInfeasible,  // capacity given and proved to be too small; there may be a placement of a larger height
  kOverflow,    // sizes, alignments and the top of the highest pinned block add up to more than 2^62
};

struct PackResult {
  PackStatus status = PackStatus::kOk;
  Placement placement;          // valid when status is kOk
  Bytes lower_bound = 0;        // proved: no placement is lower. The load's maximum, or more where a search ended
  bool proven_optimal = false;  // height == lower_bound
  int64_t nanoseconds = 0;      // of the solve: wall clock, or of PackOptions::clock
  const char* algorithm = "";   // what produced the placement, a static string
};

// Packs `instance`. Thread-safe (no shared state). Never throws but for std::bad_alloc. With status kOk there is always
// a valid placement; where time limit or `cancel` struck before the first solver was done, the blocks are simply
// stacked and `algorithm` says "stacked". The published best-fit alone takes about 1.5 microseconds a block. The time
// limit is kept within 5 % + 5 ms up to about 10,000 blocks; taking in the instance (O(n log n), some 0.5 microseconds
// a block) is not interrupted. kBestFit and kFirstFit run a single solver, and stop at time limit and `cancel` alike.
// Memory: some 150 bytes a block; with kAuto 300, and 180 more for each further thread; where the exact search runs, 20
// to 120 bytes a thread for each pair of blocks that are resident together (with kAuto at most 10^6).
PackResult Pack(const Instance& instance, const PackOptions& options = {});

const char* PackStatusText(PackStatus status);  // a static string in plain words

// The names used on command lines.
std::optional<Algorithm> AlgorithmFromName(std::string_view name);  // nothing if there is none of that name
const char* AlgorithmName(Algorithm algorithm);                     // a static string
inline constexpr const char* kAlgorithmNames = "auto, exact, best-fit, first-fit";  // for messages

// kOk, kBadInstance or kOverflow: what Pack() says about the instance before it starts. O(n log n). Thread-safe.
PackStatus CheckInstance(const Instance& instance);

}  // namespace hotpack
