#include "runtime/script/envelope_alignment.h"

#include <algorithm>
#include <cstdlib>

namespace hotpack {
namespace {

constexpr int kNever = -9;
constexpr int kAlike = 5;       // a score at which the ends of the two sequences are taken for common
constexpr int kUnmatched = 1;   // the cost of a request without an entry
constexpr int kTakenBonus = 1;  // for the entry that served the request: of equal alignments the follower's own

int SizeScore(const EnvelopeEntry& entry, uint32_t units, bool equal_sizes) {
  if (units == entry.max_units || units == entry.last_units || entry.HasSize(units)) return 3;
  if (entry.requests >= 3 && entry.changes == 0) return -3;
  if (equal_sizes) return kNever;
  if (units <= entry.max_units && units >= entry.min_units) return 2;
  return units >= entry.max_units / 10 && units / 10 <= entry.max_units ? 1 : -2;
}

int Score(const EnvelopeEntry& entry, const EnvelopeRequest& request, int life, bool equal_sizes) {
  const int by_size = SizeScore(entry, request.sign.units, equal_sizes);
  if (by_size == kNever) return kNever;
  const int by_context = entry.HasContext(request.sign.context) ? 2 : entry.HasReleases(request.sign.releases) ? 0 : -2;
  const int apart = std::abs(life - entry.life);
  const int by_life = apart == 0 ? 2 : apart == 1 ? 1 : apart == 2 ? 0 : -2;
  return by_size + by_context + by_life;
}

}  // namespace

std::vector<uint32_t> AlignIteration(const std::vector<EnvelopeEntry>& entries, const std::vector<uint32_t>& order,
                                     const std::vector<EnvelopeRequest>& iteration, const std::vector<int>& lives,
                                     bool equal_sizes) {
  std::vector<uint32_t> result(iteration.size(), kNone);
  const auto score = [&](size_t position, size_t request) {
    return Score(entries[order[position]], iteration[request], lives[request], equal_sizes);
  };
  const auto alike = [&](size_t position, size_t request) {
    const uint32_t taken = iteration[request].taken;
    return score(position, request) >= kAlike && (taken == kNone || taken == order[position]);
  };
  size_t begin = 0, order_end = order.size(), end = iteration.size();
  while (begin < order_end && begin < end && alike(begin, begin)) {
    result[begin] = order[begin];
    ++begin;
  }
  if (begin > 0) result[--begin] = kNone;  // the last one may fit better elsewhere
  while (order_end > begin && end > begin && alike(order_end - 1, end - 1)) result[--end] = order[--order_end];
  const size_t columns = order_end - begin, rows = end - begin;
  if (columns == 0 || rows == 0 || rows > kMostAlignedCells / columns) return result;

  enum Step : uint8_t { kSkipEntry, kSkipRequest, kMatch };
  std::vector<uint8_t> steps((rows + 1) * (columns + 1));
  std::vector<int> before(columns + 1, 0), now(columns + 1);
  for (size_t i = 1; i <= rows; ++i) {
    uint8_t* row = &steps[i * (columns + 1)];
    now[0] = -static_cast<int>(i) * kUnmatched;
    row[0] = kSkipRequest;
    for (size_t j = 1; j <= columns; ++j) {
      int best = now[j - 1];
      uint8_t step = kSkipEntry;
      if (before[j] - kUnmatched > best) {
        best = before[j] - kUnmatched;
        step = kSkipRequest;
      }
      int match = score(begin + j - 1, begin + i - 1);
      if (match >= 1) {
        if (iteration[begin + i - 1].taken == order[begin + j - 1]) match += kTakenBonus;
        if (before[j - 1] + match >= best) {
          best = before[j - 1] + match;
          step = kMatch;
        }
      }
      now[j] = best;
      row[j] = step;
    }
    before.swap(now);
  }
  for (size_t i = rows, j = columns; i > 0;) {
    switch (j == 0 ? kSkipRequest : static_cast<Step>(steps[i * (columns + 1) + j])) {
      case kMatch:
        result[begin + --i] = order[begin + --j];
        break;
      case kSkipRequest:
        --i;
        break;
      case kSkipEntry:
        --j;
        break;
    }
  }
  return result;
}

}  // namespace hotpack
