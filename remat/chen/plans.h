// The complete plans of Chen et al. 2016: the five lines of section 5.1, and the plan for a budget.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/chen/allocation.h"
#include "remat/chen/cuts.h"
#include "remat/chen/mirror.h"
#include "remat/chen/segments.h"

namespace hotpack::remat {

// Returns m(v): 1 where `again` is true, 0 elsewhere.
std::vector<int32_t> CountsOf(const std::vector<bool>& again);

struct MirrorPlan {
  Bytes budget = 0;        // B
  Segments segments;       // Algorithm 3's result
  MirroredGraph mirrored;  // Algorithm 2's result
  Bytes bytes = 0;         // of the static allocation with sharing: "the exact memory cost"
  Nanoseconds cost = 0;    // of all operators of the mirrored graph
};

// Returns the plans of Appendix A as published, in the order of the search: B = 0, then the BudgetsOfSearch(). Each is
// judged by the static allocation of its mirrored graph. O(points · size of the graph · log).
std::vector<MirrorPlan> SearchMirrors(const Graph& graph, const Values& values, const std::vector<Cut>& cuts,
                                      int points = 6);
// Searches twice: with CandidatesOf() the graph, then with its narrow cuts.
std::vector<MirrorPlan> SearchMirrors(const Graph& graph, const Values& values, int points = 6);

// Returns the plan of least memory. Ties: the fastest. `plans` must not be empty.
const MirrorPlan& LeastOf(const std::vector<MirrorPlan>& plans);
const MirrorPlan& LeastOf(std::vector<MirrorPlan>&& plans) = delete;  // the result would dangle

// A line of section 5.1: bytes of feature maps and their gradients, and the cost of all operators.
struct MemoryLine {
  const char* name;
  Bytes bytes;
  Nanoseconds cost;
};

// Returns the lines "no optimization", "inplace", "sharing", "drop bn-relu" (section 4.2: CheapOperators()) and
// "sublinear plan".
std::vector<MemoryLine> MemoryLines(const Graph& graph, const Values& values);

// Returns the fastest schedule whose packed arena is at most `budget` bytes, or ResourceExhausted with one line that
// names the smallest arena found. It passes Verify() and Simulate(). Thread-safe. The candidates, each as a schedule of
// the program's graph:
//  - the plans of the search;
//  - the plan of section 4.2;
//  - the plans of the recursion (section 4.4: k = 1, 2, 3; 2 levels and more, at either kind of cut).
absl::StatusOr<Schedule> ScheduleByChen(const Graph& graph, const Values& values, Bytes budget,
                                        const Machine& machine = {});

}  // namespace hotpack::remat
