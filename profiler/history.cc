#include "profiler/history.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

namespace hotpack {

// The ring is mapped, not allocated: untouched pages cost nothing, and the job's heap is not used.
History::History(uint64_t window) : mask_(std::bit_ceil(std::max<uint64_t>(window, 64)) - 1) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
  mapped_bytes_ = (mask_ + 1) * sizeof(*cells_);
  void* memory =
      mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  cells_ = static_cast<std::atomic<uint64_t>*>(memory);  // zero bytes are valid cells
}

History::~History() { munmap(cells_, mapped_bytes_); }

HistoryTail CopyTail(const History& history, uint64_t end, uint64_t limit) {
  HistoryTail tail;
  uint64_t count = history.Count();
  end = std::min(end, count);
  uint64_t oldest = count > history.Window() ? count - history.Window() : 0;
  tail.first = std::max(oldest, end > limit ? end - limit : 0);
  tail.first = std::min(tail.first, end);
  tail.units.reserve(end - tail.first);
  tail.ages.reserve(end - tail.first);
  for (uint64_t ordinal = tail.first; ordinal < end; ++ordinal) {
    tail.units.push_back(history.Units(ordinal));
    tail.ages.push_back(history.Age(ordinal));
  }
  // Drop requests that the writer overwrote meanwhile.
  uint64_t lost = 0;
  while (lost < tail.units.size() && !history.Holds(tail.first + lost)) ++lost;
  if (lost > 0) {
    tail.units.erase(tail.units.begin(), tail.units.begin() + static_cast<ptrdiff_t>(lost));
    tail.ages.erase(tail.ages.begin(), tail.ages.begin() + static_cast<ptrdiff_t>(lost));
    tail.first += lost;
  }
  return tail;
}

}  // namespace hotpack
