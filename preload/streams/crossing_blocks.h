// Pooled blocks whose memory lately went to another stream. An event at their next release is worth its cost, also
// while a plan serves: it stands for less work than an event recorded at the next request.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hotpack {

// A guess: entries replace each other. Thread-safe, lock-free, no heap.
class CrossingBlocks {
 public:
  // `block`: ReuseAfter::Point::pooled_block, not 0.
  void Note(uint32_t block) { Slot(block).store(block, std::memory_order_relaxed); }
  bool Has(uint32_t block) const {
    return const_cast<CrossingBlocks*>(this)->Slot(block).load(std::memory_order_relaxed) == block;
  }

 private:
  static constexpr uint32_t kBits = 10;
  std::atomic<uint32_t>& Slot(uint32_t block) { return slots_[(block * 0x9E3779B1u) >> (32 - kBits)]; }
  std::atomic<uint32_t> slots_[size_t{1} << kBits] = {};
};

}  // namespace hotpack
