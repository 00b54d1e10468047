// Segments, as caching allocators have them: memory taken from the driver at once and cut into chunks. The chunks of a
// segment are adjacent, and each is linked to its neighbours.
//
//   segment   ├──────── live ────────┼── free ──┼─ live ─┼───── free ─────┤
//             prev = -1        next ──►       ◄── prev                next = -1
#pragma once

#include <cstdint>
#include <vector>

namespace hotpack {

struct Chunk {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t stamp = 0;   // for the policy
  uint32_t stream = 0;  // the chunk's segment serves only this stream
  uint32_t pool = 0;    // ... and only this pool, numbered by the policy
  int32_t prev = -1, next = -1;
  bool live = false;
  bool mapped = true;  // false: addresses without memory
};

// A chunk's name is its index. Not thread-safe. Everything O(1).
class Segments {
 public:
  Chunk& operator[](int32_t chunk) { return chunks_[static_cast<size_t>(chunk)]; }
  const Chunk& operator[](int32_t chunk) const { return chunks_[static_cast<size_t>(chunk)]; }

  // Adds a segment of one chunk, at addresses never used before.
  int32_t Add(uint64_t size, uint32_t stream, uint32_t pool) {
    const int32_t chunk = New();
    Chunk& added = (*this)[chunk];
    added.address = next_address_;
    added.size = size;
    added.stream = stream;
    added.pool = pool;
    next_address_ += size;
    return chunk;
  }

  // Cuts the first `size` bytes off into `chunk`, and returns the rest, which is otherwise equal. 0 < size < the
  // chunk's size.
  int32_t Split(int32_t chunk, uint64_t size) {
    const int32_t rest = New();
    Chunk& lower = (*this)[chunk];
    Chunk& upper = (*this)[rest];
    upper = lower;
    upper.address += size;
    upper.size -= size;
    upper.prev = chunk;
    lower.size = size;
    if (lower.next >= 0) (*this)[lower.next].prev = rest;
    lower.next = rest;
    return rest;
  }

  // Joins `chunk` with the next one, whose index becomes unused.
  void JoinNext(int32_t chunk) {
    Chunk& lower = (*this)[chunk];
    const int32_t gone = lower.next;
    lower.size += (*this)[gone].size;
    lower.next = (*this)[gone].next;
    if (lower.next >= 0) (*this)[lower.next].prev = chunk;
    unused_.push_back(gone);
  }

  // Removes a whole segment.
  void Remove(int32_t chunk) { unused_.push_back(chunk); }

  bool Whole(int32_t chunk) const { return (*this)[chunk].prev < 0 && (*this)[chunk].next < 0; }

 private:
  int32_t New() {
    if (unused_.empty()) {
      chunks_.emplace_back();
      return static_cast<int32_t>(chunks_.size() - 1);
    }
    const int32_t chunk = unused_.back();
    unused_.pop_back();
    (*this)[chunk] = Chunk();
    return chunk;
  }

  std::vector<Chunk> chunks_;
  std::vector<int32_t> unused_;
  uint64_t next_address_ = 0;
};

}  // namespace hotpack
