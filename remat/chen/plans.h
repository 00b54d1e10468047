// Chen et al. 2016's plans whole: the five lines of section 5.1, and the plan for a budget.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/chen/allocation.h"
#include "remat/chen/cuts.h"
#include "remat/chen/mirror.h"
#include "remat/chen/segments.h"

namespace hotpack::remat {

// m(v) = 1 where `again` says so, 0 elsewhere.
std::vector<int32_t> CountsOf(const std::vector<bool>& again);

struct MirrorPlan {
  Bytes budget = 0;        // B
  Segments segments;       // Algorithm 3's answer
  MirroredGraph mirrored;  // Algorithm 2's
  Bytes bytes = 0;         // of the static allocation with sharing: "the exact memory cost"
  Nanoseconds cost = 0;    // of all operators of the mirrored graph
};

// Appendix A as published: B = 0, then the BudgetsOfSearch(), each judged by the static allocation of its mirrored
// graph. In the order of the search. O(points · size of the graph · log).
std::vector<MirrorPlan> SearchMirrors(const Graph& graph, const Values& values, const std::vector<Cut>& cuts,
                                      int points = 6);
// Twice: with CandidatesOf() the graph, then with its narrow cuts.
std::vector<MirrorPlan> SearchMirrors(const Graph& graph, const Values& values, int points = 6);

// The one of the least memory; of several the fastest. `plans` must not be empty.
const MirrorPlan& LeastOf(const std::vector<MirrorPlan>& plans);
const MirrorPlan& LeastOf(std::vector<MirrorPlan>&& plans) = delete;  // it would be gone

// Section 5.1's lines: bytes of feature maps and their gradients, and the cost of all operators.
struct MemoryLine {
  const char* name;
  Bytes bytes;
  Nanoseconds cost;
};

// "no optimization", "inplace", "sharing", "drop bn-relu" (section 4.2: CheapOperators()) and "sublinear plan".
std::vector<MemoryLine> MemoryLines(const Graph& graph, const Values& values);

// For a budget of bytes: of the search's plans, that of section 4.2 and the recursion's (section 4.4: k = 1, 2, 3; 2
// levels and more, at either kind of cut), each as a schedule of the program's graph, the fastest one whose packed
// arena is at most the budget. ResourceExhausted with one line that names the least arena found. The schedule passes
// Verify() and Simulate(). Thread-safe.
absl::StatusOr<Schedule> ScheduleByChen(const Graph& graph, const Values& values, Bytes budget,
                                        const Machine& machine = {});

}  // namespace hotpack::remat
