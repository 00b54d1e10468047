// The last requests of a run in compact form: the size and the life of each. Iteration detection reads it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "packer/block_unit.h"

namespace hotpack {

inline constexpr uint64_t kMaxRequestBytes = uint64_t{1} << 40;  // larger requests fail as out of memory

// Time is counted in requests: λ, over the whole run, from 0. Let a block be requested by request g and released when r
// requests have been made. Its age is r - g ≥ 1, and it is live during the requests g, g+1, ..., r-1. The order of
// releases between the same two requests does not affect ages.
inline constexpr uint32_t kStillLive = 0;        // the age of a block that has not been released
inline constexpr uint32_t kMaxAge = UINT32_MAX;  // ages are cut off here

// A ring. One writer at a time (the engine's lock). Readers need no lock, but must check Holds() after reading.
class History {
 public:
  // Stores the last `window` requests (rounded up to a power of two), 8 bytes each. Memory is touched as requests come.
  explicit History(uint64_t window);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // Adds a request and returns its ordinal. O(1), no allocation.
  uint64_t Append(uint32_t units) {
    uint64_t ordinal = count_.load(std::memory_order_relaxed);
    cells_[ordinal & mask_].store(units, std::memory_order_relaxed);  // also sets the age: kStillLive
    count_.store(ordinal + 1, std::memory_order_release);
    return ordinal;
  }

  // Records that the block of request `ordinal` is released now. Returns its age. O(1).
  uint32_t Released(uint64_t ordinal) {
    uint64_t age = count_.load(std::memory_order_relaxed) - ordinal;
    uint32_t cut = age < kMaxAge ? static_cast<uint32_t>(age) : kMaxAge;
    if (age <= mask_) SetAge(ordinal, cut);
    return cut;
  }
  // The same for a block of the size `units`.
  uint32_t Released(uint64_t ordinal, uint32_t units) {
    const uint64_t age = count_.load(std::memory_order_relaxed) - ordinal;
    if (age > short_ages_) [[unlikely]]
      return Released(ordinal);
    ReleasedAt(ordinal, units, static_cast<uint32_t>(age));
    return static_cast<uint32_t>(age);
  }
  // The same for a block that is known to be stored, `age` requests old, with the size `units`.
  void ReleasedAt(uint64_t ordinal, uint32_t units, uint32_t age) {
    cells_[ordinal & mask_].store(uint64_t{age} << 32 | units, std::memory_order_relaxed);
  }

  // Notes the stream that request `ordinal` names: its small ordinal, from 1. Streams are hints: a request whose stream
  // is not noted has none, or that of the request `window` earlier. O(1). The first one maps 2 bytes a request.
  void NoteStream(uint64_t ordinal, uint16_t stream);

  uint64_t Count() const { return count_.load(std::memory_order_acquire); }  // requests so far
  uint64_t Window() const { return mask_ + 1; }
  // Returns whether request `ordinal` (< Count()) is still stored.
  bool Holds(uint64_t ordinal) const { return Count() - ordinal <= mask_; }
  uint32_t Units(uint64_t ordinal) const { return static_cast<uint32_t>(Cell(ordinal)); }
  uint32_t Age(uint64_t ordinal) const { return static_cast<uint32_t>(Cell(ordinal) >> 32); }
  bool HasStreams() const { return streams_.load(std::memory_order_acquire) != nullptr; }
  // Returns the stream noted for a request; 0: none.
  uint16_t Stream(uint64_t ordinal) const {
    const std::atomic<uint16_t>* streams = streams_.load(std::memory_order_acquire);
    return streams == nullptr ? 0 : streams[ordinal & mask_].load(std::memory_order_relaxed);
  }

 private:
  uint64_t Cell(uint64_t ordinal) const { return cells_[ordinal & mask_].load(std::memory_order_relaxed); }
  void SetAge(uint64_t ordinal, uint32_t age) { ReleasedAt(ordinal, Units(ordinal), age); }

  std::atomic<uint64_t>* cells_;                          // units in the lower half, age in the upper
  std::atomic<std::atomic<uint16_t>*> streams_{nullptr};  // null: no request has named one
  uint64_t mask_;
  uint64_t short_ages_;  // such ages are neither cut off, nor of requests that are not stored any more
  size_t mapped_bytes_;
  std::atomic<uint64_t> count_{0};
};

// A copy of the end of a history: requests [first, first + units.size()).
struct HistoryTail {
  uint64_t first = 0;
  std::vector<uint32_t> units;
  std::vector<uint32_t> ages;     // kStillLive, or the age
  std::vector<uint16_t> streams;  // as noted; empty: none were
  uint16_t StreamOf(size_t i) const { return streams.empty() ? 0 : streams[i]; }
  uint64_t end() const { return first + units.size(); }
};

// Copies the requests before `end` (≤ Count()), at most `limit`. The writer may continue meanwhile. O(limit).
HistoryTail CopyTail(const History& history, uint64_t end, uint64_t limit);

}  // namespace hotpack
