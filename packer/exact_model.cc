#include "packer/exact_model.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "packer/bounds.h"
#include "packer/pack.h"

namespace hotpack {
namespace {

struct Interval {
  Clock begin;
  Clock end;
  int32_t block;
};

std::vector<Interval> IntervalsByBegin(const Instance& instance) {
  std::vector<Interval> intervals;
  for (size_t block = 0; block < instance.blocks.size(); ++block) {
    for (const Residency& residency : instance.blocks[block].residency) {
      intervals.push_back({residency.begin, residency.end, static_cast<int32_t>(block)});
    }
  }
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.block < b.block;
  });
  return intervals;
}

// Counts the overlapping pairs of intervals without visiting each: at every begin, those that have begun and not ended.
int64_t CountOverlaps(const std::vector<Interval>& by_begin) {
  std::vector<Clock> ends;
  ends.reserve(by_begin.size());
  for (const Interval& interval : by_begin) ends.push_back(interval.end);
  std::sort(ends.begin(), ends.end());
  int64_t overlaps = 0;
  size_t ended = 0;
  for (size_t begun = 0; begun < by_begin.size(); ++begun) {
    while (ends[ended] <= by_begin[begun].begin) ++ended;
    overlaps += static_cast<int64_t>(begun - ended);
  }
  return overlaps;
}

// E of the paper, without pairs of two pinned blocks.
std::vector<std::pair<int32_t, int32_t>> CollidingPairs(const Instance& instance, const std::vector<Interval>& by_begin,
                                                        int64_t overlaps) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  pairs.reserve(static_cast<size_t>(overlaps));
  std::vector<Interval> resident;
  for (const Interval& interval : by_begin) {
    std::erase_if(resident, [&](const Interval& other) { return other.end <= interval.begin; });
    const bool pinned = instance.blocks[interval.block].pinned != kNotPinned;
    for (const Interval& other : resident) {
      if (pinned && instance.blocks[other.block].pinned != kNotPinned) continue;
      pairs.push_back(std::minmax(interval.block, other.block));
    }
    resident.push_back(interval);
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());  // blocks that meet in several intervals
  return pairs;
}

// Returns the height of a placement that does not depend on the machine's speed.
Bytes HeuristicHeight(const Instance& instance) {
  Bytes height = std::numeric_limits<Bytes>::max();
  for (Algorithm algorithm : {Algorithm::kBestFit, Algorithm::kFirstFit}) {
    PackOptions options;
    options.algorithm = algorithm;
    options.time_limit_ns = std::numeric_limits<int64_t>::max();
    height = std::min(height, Pack(instance, options).placement.height);
  }
  return height;
}

absl::Status SetScale(const Instance& instance, const ModelOptions& options, ExactModel* model) {
  const Bytes bound = LowerBound(instance);
  if (options.as_published) {
    model->big = options.memory;
    if (options.memory < bound) {
      return absl::InvalidArgumentError(
          absl::StrCat("W = ", options.memory, " bytes of memory is less than the lower bound ", bound));
    }
  } else {
    model->unit = ModelUnit(instance);
    model->big = HeuristicHeight(instance) / model->unit;  // its offsets rounded down to units
    model->lower_bound = (bound + model->unit - 1) / model->unit;
  }
  if (model->big > kLargestModelNumber) {
    return absl::InvalidArgumentError(absl::StrCat("W = ", model->big, " in units of ", model->unit,
                                                   " bytes is above 2^53: no solver computes with it exactly"));
  }
  return absl::OkStatus();
}

ModelBlock ToUnits(const Block& block, const ExactModel& model) {
  ModelBlock scaled;
  scaled.size = block.size / model.unit;
  scaled.alignment = std::max<Bytes>(1, block.alignment / model.unit);  // one divides the other
  if (block.pinned != kNotPinned) scaled.pinned = block.pinned / model.unit;
  scaled.most = model.as_published ? model.big : model.big - scaled.size;
  return scaled;
}

}  // namespace

Bytes ModelUnit(const Instance& instance) { return instance.blocks.empty() ? 1 : HeightUnit(MakeTimeline(instance)); }

absl::StatusOr<ExactModel> BuildExactModel(const Instance& instance, const ModelOptions& options) {
  if (instance.blocks.empty()) return absl::InvalidArgumentError("there are no blocks to place");
  if (const PackStatus status = CheckInstance(instance); status != PackStatus::kOk) {
    return absl::InvalidArgumentError(PackStatusText(status));
  }
  const std::vector<Interval> intervals = IntervalsByBegin(instance);
  const int64_t overlaps = CountOverlaps(intervals);
  if (overlaps > options.pair_limit) {
    return absl::InvalidArgumentError(absl::StrCat(overlaps, " pairs of residency intervals overlap, more than the ",
                                                   options.pair_limit, " for which a model is written"));
  }
  ExactModel model;
  model.as_published = options.as_published;
  if (absl::Status status = SetScale(instance, options, &model); !status.ok()) return status;
  for (const Block& block : instance.blocks) model.blocks.push_back(ToUnits(block, model));
  model.pairs = CollidingPairs(instance, intervals, overlaps);
  return model;
}

double ToleratedOverlap(int64_t big) { return kIntegralityTolerance * static_cast<double>(big); }

}  // namespace hotpack
