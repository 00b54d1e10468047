#include "packer/pack.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "packer/best_fit.h"
#include "packer/bounds.h"
#include "packer/first_fit.h"
#include "packer/shared_best.h"
#include "packer/skyline.h"
#include "packer/solve.h"
#include "packer/stop.h"
#include "packer/timeline.h"
#include "packer/validator.h"

namespace hotpack {
namespace {

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
  StopCheck stop(deadline_ns, options.cancel, options.clock);
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

// Uses the caller's initial offsets. If they are no valid placement, places the blocks in the order of their offsets,
// each at the lowest free offset.
void UseStart(const Instance& instance, const Timeline& timeline, const Placement* start, StopCheck* stop,
              Incumbent* incumbent) {
  if (start == nullptr || start->offsets.size() != timeline.sizes.size()) return;
  Placement given{start->offsets, 0};
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    // Offsets that would overflow are invalid: the validator detects that whatever the height.
    const Offset offset = std::clamp<Offset>(given.offsets[block], 0, std::numeric_limits<Offset>::max() / 2);
    given.height = std::max(given.height, offset + timeline.sizes[block]);
  }
  if (Validate(instance, given).empty()) {
    if (given.height < incumbent->placement.height) *incumbent = {std::move(given), "start"};
    return;
  }
  std::vector<int32_t> order(timeline.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return start->offsets[a] < start->offsets[b]; });
  Placement placement;
  if (!FirstFit(timeline).Place(order, incumbent->placement.height - 1, stop, &placement.offsets, &placement.height))
    return;
  *incumbent = {std::move(placement), "start"};
}

void SolveInstance(const Instance& instance, const PackOptions& options, int64_t begin_ns, PackResult* result) {
  const int64_t deadline_ns = Deadline(begin_ns, options.time_limit_ns);
  const Timeline timeline = MakeTimeline(instance);
  result->lower_bound = LowerBound(timeline);
  if (options.capacity > 0 && options.capacity < result->lower_bound) {
    result->status = PackStatus::kInfeasible;
    return;
  }
  Incumbent incumbent{Stacked(timeline), "stacked"};
  if (options.algorithm == Algorithm::kAuto || options.algorithm == Algorithm::kExact) {
    StopCheck stop(deadline_ns, options.cancel, options.clock);
    UseStart(instance, timeline, options.start, &stop, &incumbent);
    Solution solution =
        Solve(instance, timeline, options, std::move(incumbent), result->lower_bound,
              {.target_height = std::max(options.capacity, options.target_height), .decide = options.capacity > 0},
              deadline_ns);
    incumbent = std::move(solution.incumbent);
    result->lower_bound = solution.lower;
  } else {
    RunOneSolver(timeline, options, deadline_ns, &incumbent);
  }
  result->placement = std::move(incumbent.placement);
  result->algorithm = incumbent.algorithm;
  if (options.capacity > 0 && result->lower_bound > options.capacity) result->status = PackStatus::kInfeasible;
}

}  // namespace

PackResult Pack(const Instance& instance, const PackOptions& options) {
  const int64_t begin_ns = NanosecondsOn(options.clock);
  PackResult result;
  result.algorithm = AlgorithmName(options.algorithm);
  result.status = CheckInstance(instance);
  if (result.status == PackStatus::kOk && !instance.blocks.empty()) SolveInstance(instance, options, begin_ns, &result);
  result.proven_optimal = result.status == PackStatus::kOk && result.placement.height == result.lower_bound;
  result.nanoseconds = NanosecondsOn(options.clock) - begin_ns;
  return result;
}

const char* PackStatusText(PackStatus status) {
  switch (status) {
    case PackStatus::kOk:
      return "packed";
    case PackStatus::kBadInstance:
      return "the instance is malformed: a size, residency, alignment or pinned offset is not allowed";
    case PackStatus::kInfeasible:
      return "no placement has that capacity: proved";
    case PackStatus::kOverflow:
      return "the sizes or clock values are too large to add up";
  }
  return "unknown status";
}

std::optional<Algorithm> AlgorithmFromName(std::string_view name) {
  for (Algorithm algorithm : {Algorithm::kAuto, Algorithm::kBestFit, Algorithm::kFirstFit, Algorithm::kExact}) {
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
    case Algorithm::kExact:
      return "exact";
  }
  return "unknown";
}

}  // namespace hotpack
