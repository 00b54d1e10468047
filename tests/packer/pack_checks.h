// The assertions of pack_check about the packer on one instance, and how it reduces a failing instance.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "packer/pack.h"
#include "packer/types.h"

namespace hotpack::testing {

// Facts about an instance, found without the solvers: the least height is in [least, placement.height].
struct Truth {
  Bytes least = 0;
  Placement placement;  // valid
};

struct Fault {
  std::string kind;  // a few words, the same for the same assertion
  std::string detail;
};

struct CheckCounts {
  int64_t instances = 0;
  int64_t packs = 0;              // calls of Pack()
  int64_t placements = 0;         // validated
  int64_t above_bound = 0;        // instances whose least height is above load and pins
  int64_t truth_open = 0;         // instances whose least height is known only as a range
  int64_t best_fit_optimal = 0;   // the heuristic was optimal
  int64_t first_fit_optimal = 0;  //
  int64_t auto_short = 0;         // auto knew the least height and did not reach it in time
  int64_t auto_proofs = 0;        // auto alone ended with a proof
  int64_t exact_open = 0;         // exact ran into its time limit

  CheckCounts& operator+=(const CheckCounts& other);
};

struct CheckLimits {
  int64_t auto_ns = 2'000'000;
  int64_t exact_ns = 1'000'000'000;
};

// Runs every algorithm on the instance, in all the ways below, and returns the first fault.
//  - Validate() and ReferenceFault() agree on each placement, and on damaged ones; each placement returned is valid;
//  - load ≤ lower_bound ≤ least height; proven_optimal exactly when it is so;
//  - the capacity: never kInfeasible at the known height; exact finds it there, and proves it below the least height;
//  - exact without capacity: the least height, proven;
//  - time limit 0 and a cancellation that is set: valid at once; with a placement to start from, never above it;
//  - sizes grown from an old placement: valid, pins of the blocks that stay kept;
//  - pins drawn without care: refused exactly if two of them collide;
//  - the same instance and seed: the same placement; blocks renumbered, time reversed: the same least height.
// The random choices follow from `seed`, so the same seed repeats them.
std::optional<Fault> CheckPacking(const Instance& instance, const Truth& truth, const CheckLimits& limits,
                                  uint64_t seed, CheckCounts* counts);

// Removes blocks and intervals, and simplifies sizes, alignments and pins, as long as `check` fails with a fault of the
// same kind. `*instance` is the failing instance and becomes the reduced one. Returns the reduced one's fault.
Fault Shrink(const std::function<std::optional<Fault>(const Instance&)>& check, Fault fault, Instance* instance);

// As a minimalloc CSV, clock values moved to 0 or above, and a line "pins: BLOCK@OFFSET ..." if there are any.
std::string Describe(const Instance& instance);

}  // namespace hotpack::testing
