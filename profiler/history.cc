#include "profiler/history.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

namespace hotpack {

namespace {

// The rings are mapped, not allocated: untouched pages cost nothing, and the job's heap is not used. Zero bytes are
// valid cells. Returns null if there is no memory.
void* MapZeros(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

History::History(uint64_t window)
    : mask_(std::bit_ceil(std::max<uint64_t>(window, 64)) - 1), short_ages_(std::min<uint64_t>(mask_, kMaxAge - 1)) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint16_t>::is_always_lock_free);
  mapped_bytes_ = (mask_ + 1) * sizeof(*cells_);
  cells_ = static_cast<std::atomic<uint64_t>*>(MapZeros(mapped_bytes_));
  if (cells_ == nullptr) throw std::bad_alloc();
}

History::~History() {
  munmap(cells_, mapped_bytes_);
  if (HasStreams()) munmap(streams_.load(), (mask_ + 1) * sizeof(uint16_t));
}

void History::NoteStream(uint64_t ordinal, uint16_t stream) {
  std::atomic<uint16_t>* streams = streams_.load(std::memory_order_relaxed);
  if (streams == nullptr) {
    if (stream == 0) return;
    streams = static_cast<std::atomic<uint16_t>*>(MapZeros((mask_ + 1) * sizeof(uint16_t)));
    if (streams == nullptr) return;
    streams_.store(streams, std::memory_order_release);
  }
  streams[ordinal & mask_].store(stream, std::memory_order_relaxed);
}

HistoryTail CopyTail(const History& history, uint64_t end, uint64_t limit) {
  HistoryTail tail;
  uint64_t count = history.Count();
  end = std::min(end, count);
  uint64_t oldest = count > history.Window() ? count - history.Window() : 0;
  tail.first = std::max(oldest, end > limit ? end - limit : 0);
  tail.first = std::min(tail.first, end);
  tail.units.reserve(end - tail.first);
  tail.ages.reserve(end - tail.first);
  const bool streams = history.HasStreams();
  if (streams) tail.streams.reserve(end - tail.first);
  for (uint64_t ordinal = tail.first; ordinal < end; ++ordinal) {
    tail.units.push_back(history.Units(ordinal));
    tail.ages.push_back(history.Age(ordinal));
    if (streams) tail.streams.push_back(history.Stream(ordinal));
  }
  // Drop requests that the writer overwrote meanwhile.
  uint64_t lost = 0;
  while (lost < tail.units.size() && !history.Holds(tail.first + lost)) ++lost;
  if (lost > 0) {
    tail.units.erase(tail.units.begin(), tail.units.begin() + static_cast<ptrdiff_t>(lost));
    tail.ages.erase(tail.ages.begin(), tail.ages.begin() + static_cast<ptrdiff_t>(lost));
    if (streams) tail.streams.erase(tail.streams.begin(), tail.streams.begin() + static_cast<ptrdiff_t>(lost));
    tail.first += lost;
  }
  return tail;
}

}  // namespace hotpack
