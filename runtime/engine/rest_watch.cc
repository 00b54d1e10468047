#include "runtime/engine/rest_watch.h"

#include <algorithm>
#include <utility>

namespace hotpack {
namespace {

constexpr uint64_t kHeldPart = 64;   // a script may make the arena hold so large a part more
constexpr uint64_t kSame = 16;       // equal iterations, until a script is planned
constexpr uint64_t kPatience = 16;   // of these, until one that was not found is planned again
constexpr uint64_t kNeededMore = 4;  // times as many, for each script, and for each iteration that differed

}  // namespace

void RestWatch::NoteIteration(bool same, uint64_t driver_calls) {
  const bool called = std::exchange(calls_, driver_calls) != driver_calls;
  if (!same) {
    longest_ = std::max(longest_, same_);
    same_ = at_post_ = with_calls_ = 0;
  }
  if (same) ++same_;
  if (same && called) ++with_calls_;
}

// A job may differ again and again, as by an evaluation after so many steps: a rest must be longer than any before.
uint64_t RestWatch::Needed() const { return std::max(kSame * more_, kNeededMore * longest_); }

RestWatch::Advice RestWatch::Next(bool pending) const {
  if (same_ < Needed()) return Advice::kNone;
  if (at_post_ > 0 && pending) return Advice::kTakeOver;
  return at_post_ == 0 || same_ - at_post_ >= kPatience ? Advice::kPlan : Advice::kNone;
}

bool RestWatch::MayTakeOver(uint64_t most_held, uint64_t reserved) {
  const bool may = CallsTheDriver() || most_held <= reserved + reserved / kHeldPart;
  same_ = at_post_ = with_calls_ = 0;
  more_ *= kNeededMore;
  return may;
}

bool SameRequests(const History& history, uint64_t begin, uint64_t length) {
  if (!history.Holds(begin)) return false;
  for (uint64_t ordinal = begin; ordinal < begin + length; ++ordinal) {
    if (history.Units(ordinal) != history.Units(ordinal + length)) return false;
  }
  return true;
}

}  // namespace hotpack
