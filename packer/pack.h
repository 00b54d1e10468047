// The packer's only entry point: instance in, placement out.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "packer/types.h"

namespace hotpack {

class WorkClock;  // packer/stop.h

enum class Algorithm {
  kAuto,      // portfolio of all algorithms below, best result; stops at the lower bound
  kBestFit,   // the best-fit heuristic as published (Sekiyama 2018, §3.2)
  kExact,     // the published best-fit, then only exact search (none above 4 million pairs of blocks that meet): for
              // proofs and for research
  kFirstFit,  // blocks in a fixed order of decreasing size, each at its lowest free offset
};

struct PackOptions {
  Algorithm algorithm = Algorithm::kAuto;
  int64_t time_limit_ns = 1'000'000'000;  // anytime: returns the best placement found by then
  // > 0: only asks whether there is a placement of at most this height. kAuto and kExact return kOk and such a height,
  // or kInfeasible, or (undecided at the time limit) kOk and a larger height.
  Bytes capacity = 0;
  Bytes target_height = 0;                    // > 0: all heights up to this are equally good
  uint64_t seed = 1;                          // same seed, one thread, no time-out: same placement
  int threads = 1;                            // ≥ 1
  const std::atomic<bool>* cancel = nullptr;  // set from another thread: return the best placement so far
  // null: the machine's clock counts the time limit. Otherwise this clock does. It advances with the work done, so the
  // same instance always has the same placement. Then only one thread works, whatever `threads` says. Not owned.
  WorkClock* clock = nullptr;
  // Initial offsets for all blocks, or null; used by kAuto and kExact. If they are a valid placement, the result is
  // never higher. If they are not valid any more (sizes grew, blocks were pinned), blocks are placed again in the order
  // of these offsets, each as low as possible. Its `height` is ignored.
  const Placement* start = nullptr;
};

enum class PackStatus {
  kOk,
  kBadInstance,  // a block with size ≤ 0, no or an empty residency or intervals not ascending and disjoint, alignment <
                 // 1, pinned offset negative (but kNotPinned) or misaligned, or two pinned blocks that collide
  kInfeasible,  // the given capacity is proved too small; there may be a higher placement
  kOverflow,    // sizes, alignments and the top of the highest pinned block add up to more than 2^62
};

struct PackResult {
  PackStatus status = PackStatus::kOk;
  Placement placement;          // valid when status is kOk
  Bytes lower_bound = 0;        // proved: no placement is lower. The load's maximum, or more if a search raised it
  bool proven_optimal = false;  // height == lower_bound
  int64_t nanoseconds = 0;      // of the solve: wall clock, or of PackOptions::clock
  const char* algorithm = "";   // producer of the placement, a static string
};

// Packs `instance`. Thread-safe (no shared state). Throws only std::bad_alloc.
// - Result: with status kOk there is always a valid placement. If the time limit or `cancel` struck before the first
//   solver finished, the blocks are simply stacked, and `algorithm` is "stacked".
// - Time: the published best-fit alone takes about 1.5 microseconds per block. The time limit is kept within 5 % + 5 ms
//   up to about 10,000 blocks. Reading the instance (O(n log n), about 0.5 microseconds per block) is not interrupted.
//   kBestFit and kFirstFit run a single solver, and stop at time limit and `cancel`, too.
// - Memory: about 150 bytes per block. With kAuto 300, and 180 more for each further thread. The exact search adds 20
//   to 120 bytes per thread for each pair of blocks that are resident together (with kAuto at most 10^6 pairs).
PackResult Pack(const Instance& instance, const PackOptions& options = {});

const char* PackStatusText(PackStatus status);  // a static string in plain words

// The names used on command lines.
std::optional<Algorithm> AlgorithmFromName(std::string_view name);                  // nothing if the name is unknown
const char* AlgorithmName(Algorithm algorithm);                                     // a static string
inline constexpr const char* kAlgorithmNames = "auto, exact, best-fit, first-fit";  // for messages

// Returns kOk, kBadInstance or kOverflow, as Pack() does before it starts. O(n log n). Thread-safe.
PackStatus CheckInstance(const Instance& instance);

}  // namespace hotpack
