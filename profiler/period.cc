#include "profiler/period.h"

#include <algorithm>

namespace hotpack {
namespace {

// Returns whether the last `length` requests are themselves repetitions of a shorter sequence that divides `length`.
bool IsMultiple(const std::vector<uint32_t>& matches, uint64_t length) {
  auto repeats = [&](uint64_t divisor) { return divisor < length && matches[divisor] >= length - divisor; };
  for (uint64_t d = 1; d * d <= length; ++d) {
    if (length % d != 0) continue;
    if (repeats(d) || repeats(length / d)) return true;
  }
  return false;
}

// Bytes (in units) requested in the last occurrences, and released meanwhile. Several occurrences are counted, because
// lives may repeat only every few of them (micro-batches that accumulate). The first is omitted: what it releases was
// requested before.
struct Turnover {
  uint64_t asked = 0;
  uint64_t released = 0;
  uint64_t foreign = 0;  // ... of the released ones: requested before the repetition began
};

Turnover LastTurnover(const HistoryTail& tail, uint64_t length, uint64_t run) {
  constexpr uint64_t kOccurrences = 8;
  Turnover turnover;
  uint64_t n = tail.units.size(), span = std::min(run / length, kOccurrences) * length;
  for (uint64_t i = 0; i < n; ++i) {
    if (i + span >= n) turnover.asked += tail.units[i];
    uint64_t released_at = i + tail.ages[i];  // requests made by then, counted from tail.first
    // From just after request n - span - 1 to just after request n - 1, the newest.
    if (tail.ages[i] == kStillLive || released_at < n - span || released_at >= n) continue;
    turnover.released += tail.units[i];
    if (i + run + length < n) turnover.foreign += tail.units[i];
  }
  return turnover;
}

bool IsBalanced(const HistoryTail& tail, uint64_t length, uint64_t run) {
  Turnover turnover = LastTurnover(tail, length, run);
  uint64_t difference = std::max(turnover.asked, turnover.released) - std::min(turnover.asked, turnover.released);
  return difference * 10 <= turnover.asked && turnover.foreign * 100 <= turnover.asked;
}

}  // namespace

std::vector<uint32_t> MatchLengths(const std::vector<uint32_t>& units) {
  uint64_t n = units.size();
  std::vector<uint32_t> z(n, 0);
  auto at = [&](uint64_t i) { return units[n - 1 - i]; };  // reversed
  uint64_t left = 0, right = 0;                            // [left, right): rightmost window known to match a prefix
  for (uint64_t i = 1; i < n; ++i) {
    uint64_t length = i < right ? std::min<uint64_t>(right - i, z[i - left]) : 0;
    while (i + length < n && at(length) == at(i + length)) ++length;
    z[i] = static_cast<uint32_t>(length);
    if (i + length > right) {
      left = i;
      right = i + length;
    }
  }
  return z;
}

Period FindPeriod(const HistoryTail& tail) {
  uint64_t n = tail.units.size();
  std::vector<uint32_t> matches = MatchLengths(tail.units);
  for (uint64_t length = n / 2; length >= 1; --length) {
    uint64_t run = matches[length];
    if (run < length) continue;
    if (3 * (run + length) < n && run < 15 * length) continue;
    if (IsMultiple(matches, length)) continue;
    if (!IsBalanced(tail, length, run)) continue;
    return {length, run};
  }
  return {};
}

}  // namespace hotpack
