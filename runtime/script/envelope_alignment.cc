#include "runtime/script/envelope_alignment.h"

#include <algorithm>
#include <cstdlib>

namespace hotpack {
namespace {

constexpr int kNever = -9;
constexpr int kAlike = 5;           // a score at which the ends of the two sequences are taken for common
constexpr int kPoint = 4;           // what a point of a score counts in an alignment
constexpr int kUnmatched = kPoint;  // the cost of a request without an entry
// For the entry that served the request: of equal alignments the follower's own. A whole point would let it insert
// entries only to stay a turn ahead in a loop.
constexpr int kTakenBonus = 1;

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
  // From the end, so that of equal alignments the one is taken that follows the entries as long as it can. The follower
  // does the same: a loop that ends early leaves out its last turns, not some in the middle.
  std::vector<uint8_t> steps(rows * (columns + 1));
  std::vector<int> after(columns + 1, 0), now(columns + 1);
  for (size_t i = rows; i-- > 0;) {
    uint8_t* row = &steps[i * (columns + 1)];
    now[columns] = -static_cast<int>(rows - i) * kUnmatched;
    row[columns] = kSkipRequest;
    for (size_t j = columns; j-- > 0;) {
      int best = now[j + 1];
      uint8_t step = kSkipEntry;
      if (after[j] - kUnmatched >= best) {
        best = after[j] - kUnmatched;
        step = kSkipRequest;
      }
      int match = score(begin + j, begin + i) * kPoint;
      if (match >= kPoint) {
        if (iteration[begin + i].taken == order[begin + j]) match += kTakenBonus;
        if (after[j + 1] + match >= best) {
          best = after[j + 1] + match;
          step = kMatch;
        }
      }
      now[j] = best;
      row[j] = step;
    }
    after.swap(now);
  }
  for (size_t i = 0, j = 0; i < rows;) {
    switch (static_cast<Step>(steps[i * (columns + 1) + j])) {
      case kMatch:
        result[begin + i++] = order[begin + j++];
        break;
      case kSkipRequest:
        ++i;
        break;
      case kSkipEntry:
        ++j;
        break;
    }
  }
  return result;
}

}  // namespace hotpack
