// The packer's one entry point: instance in, placement out.
#pragma once

#include <atomic>
#include <cstdint>

#include "packer/types.h"

namespace hotpack {

enum class Algorithm {
  kAuto,     // portfolio: everything below, best result; stops at the lower bound
  kBestFit,  // the best-fit heuristic as published (Sekiyama 2018, §3.2)
  kFirstFit, // blocks in a fixed order of decreasing size, each at its lowest free offset
};

struct PackOptions {
  Algorithm algorithm = Algorithm::kAuto;
  int64_t time_limit_ns = 1'000'000'000;       // anytime: the best placement found by then is returned
  Bytes capacity = 0;                          // > 0: stop as soon as the height is at most this
  uint64_t seed = 1;                           // same seed, one thread, no time-out: same placement
  int threads = 1;                             // ≥ 1
  const std::atomic<bool>* cancel = nullptr;   // set from another thread: return the best found so far
  const Placement* start = nullptr;            // a placement to begin from (offsets for all blocks), or null
};

enum class PackStatus {
  kOk,
  kBadInstance,   // a block with size ≤ 0, no or an empty residency, alignment < 1, pinned offset misaligned, or
                  // two pinned blocks that collide
  kInfeasible,    // capacity given and proved to be too small
  kOverflow,      // sizes add up to more than 2^62
};

struct PackResult {
  PackStatus status = PackStatus::kOk;
  Placement placement;          // valid when status is kOk
  Bytes lower_bound = 0;        // no placement is lower than this (≥ the load's maximum)
  bool proven_optimal = false;  // height == lower_bound, or the exact search ended
  int64_t nanoseconds = 0;      // wall clock of the solve
  const char* algorithm = "";   // what produced the placement, a static string
};

// Packs `instance`. Thread-safe (no shared state). Never throws but for std::bad_alloc.
PackResult Pack(const Instance& instance, const PackOptions& options = {});

const char* PackStatusText(PackStatus status);  // a static string in plain words

}  // namespace hotpack
