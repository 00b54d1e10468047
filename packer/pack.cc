#include "packer/pack.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "packer/best_fit.h"
#include "packer/first_fit.h"
#include "packer/portfolio.h"
#include "packer/stop.h"
#include "packer/timeline.h"
#include "packer/validator.h"

namespace hotpack {
namespace {

Offset RoundUp(Offset offset, Bytes alignment) {
  const Offset rest = offset % alignment;
  return rest == 0 ? offset : offset + (alignment - rest);
}

// Every block above all others, the pinned ones below: valid, and there in O(n) whatever the time limit.
Placement Stacked(const Timeline& timeline) {
  Placement placement;
  placement.offsets.resize(timeline.sizes.size());
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    if (timeline.pins[block] == kNotPinned) continue;
    placement.offsets[block] = timeline.pins[block];
    placement.height = std::max(placement.height, timeline.pins[block] + timeline.sizes[block]);
  }
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    if (timeline.pins[block] != kNotPinned) continue;
    placement.offsets[block] = RoundUp(placement.height, timeline.alignments[block]);
    placement.height = placement.offsets[block] + timeline.sizes[block];
  }
  return placement;
}

// Decreasing size, then decreasing lifetime, then index.
std::vector<int32_t> FirstFitOrder(const Timeline& timeline) {
  std::vector<int32_t> order(timeline.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    if (timeline.sizes[a] != timeline.sizes[b]) return timeline.sizes[a] > timeline.sizes[b];
    if (timeline.lifetimes[a] != timeline.lifetimes[b]) return timeline.lifetimes[a] > timeline.lifetimes[b];
    return a < b;
  });
  return order;
}

void RunOneSolver(const Timeline& timeline, const PackOptions& options, int64_t deadline_ns, Incumbent* incumbent) {
  StopCheck stop(deadline_ns, options.cancel);
  constexpr Bytes kAnyHeight = std::numeric_limits<Bytes>::max();
  Placement placement;
  const bool done =
      options.algorithm == Algorithm::kBestFit
          ? Skyline(timeline).Dive(BestFitRanks(timeline), kAnyHeight, &stop, &placement.offsets, &placement.height)
          : FirstFit(timeline).Place(FirstFitOrder(timeline), kAnyHeight, &stop, &placement.offsets, &placement.height);
  if (done) *incumbent = {std::move(placement), AlgorithmName(options.algorithm)};
}

int64_t Deadline(int64_t begin_ns, int64_t limit_ns) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  return limit_ns > kNever - begin_ns ? kNever : begin_ns + limit_ns;
}

// A placement to begin from counts only if it is one.
void UseStart(const Instance& instance, const Placement* start, Incumbent* incumbent) {
  if (start == nullptr || start->offsets.size() != instance.blocks.size()) return;
  if (start->height >= incumbent->placement.height || !Validate(instance, *start).empty()) return;
  *incumbent = {*start, "start"};
}

// LowerBound() without sorting once more.
Bytes BoundOf(const Timeline& timeline) {
  Bytes bound = *std::max_element(timeline.loads.begin(), timeline.loads.end());
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    if (timeline.pins[block] != kNotPinned) bound = std::max(bound, timeline.pins[block] + timeline.sizes[block]);
  }
  return bound;
}

void Solve(const Instance& instance, const PackOptions& options, int64_t begin_ns, PackResult* result) {
  const int64_t deadline_ns = Deadline(begin_ns, options.time_limit_ns);
  const Timeline timeline = MakeTimeline(instance);
  result->lower_bound = BoundOf(timeline);
  if (options.capacity > 0 && options.capacity < result->lower_bound) {
    result->status = PackStatus::kInfeasible;
    return;
  }
  Incumbent incumbent{Stacked(timeline), "stacked"};
  if (options.algorithm == Algorithm::kAuto) {
    UseStart(instance, options.start, &incumbent);
    RunPortfolio(timeline, options, result->lower_bound, deadline_ns, &incumbent);
  } else {
    RunOneSolver(timeline, options, deadline_ns, &incumbent);
  }
  result->placement = std::move(incumbent.placement);
  result->algorithm = incumbent.algorithm;
}

}  // namespace

PackResult Pack(const Instance& instance, const PackOptions& options) {
  const int64_t begin_ns = MonotonicNanoseconds();
  PackResult result;
  result.algorithm = AlgorithmName(options.algorithm);
  result.status = CheckInstance(instance);
  if (result.status == PackStatus::kOk && !instance.blocks.empty()) Solve(instance, options, begin_ns, &result);
  result.proven_optimal = result.status == PackStatus::kOk && result.placement.height == result.lower_bound;
  result.nanoseconds = MonotonicNanoseconds() - begin_ns;
  return result;
}

const char* PackStatusText(PackStatus status) {
  switch (status) {
    case PackStatus::kOk:
      return "packed";
    case PackStatus::kBadInstance:
      return "the instance is malformed: a size, residency, alignment or pinned offset is not allowed";
    case PackStatus::kInfeasible:
      return "the capacity is less than the lower bound";
    case PackStatus::kOverflow:
      return "the sizes or clock values are too large to add up";
  }
  return "unknown status";
}

std::optional<Algorithm> AlgorithmFromName(std::string_view name) {
  for (Algorithm algorithm : {Algorithm::kAuto, Algorithm::kBestFit, Algorithm::kFirstFit}) {
    if (name == AlgorithmName(algorithm)) return algorithm;
  }
  return std::nullopt;
}

const char* AlgorithmName(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kAuto:
      return "auto";
    case Algorithm::kBestFit:
      return "best-fit";
    case Algorithm::kFirstFit:
      return "first-fit";
  }
  return "unknown";
}

}  // namespace hotpack
