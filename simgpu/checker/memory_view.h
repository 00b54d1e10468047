// The checker's queries to the driver about an address.
#pragma once

#include <algorithm>
#include <cstdint>

#include "simgpu/checker/order.h"

namespace simgpu {

// Unordered uses of a piece of memory: the last operation of each stream.
class UseSet {
 public:
  void Add(Epoch e) {
    for (Epoch& have : uses_) {
      if (have.stream == e.stream) {
        if (have.tick < e.tick) have.tick = e.tick;
        return;
      }
    }
    uses_.push_back(e);
  }
  void Merge(const UseSet& other, const Order& order) {
    for (Epoch e : other.uses_) {
      if (!order.Finished(e)) Add(e);
    }
  }
  void DropFinished(const Order& order) {
    std::erase_if(uses_, [&](Epoch e) { return order.Finished(e); });
  }
  bool empty() const { return uses_.empty(); }
  bool SameAs(const UseSet& other) const {
    return std::equal(uses_.begin(), uses_.end(), other.uses_.begin(), other.uses_.end(),
                      [](Epoch a, Epoch b) { return a.stream == b.stream && a.tick == b.tick; });
  }
  auto begin() const { return uses_.begin(); }
  auto end() const { return uses_.end(); }

 private:
  std::vector<Epoch> uses_;
};

enum class RegionKind : uint8_t {
  kForeign,     // not an address of the device: pageable host memory, or nothing
  kHost,        // pinned, registered or managed memory
  kAllocation,  // one allocation of the driver
  kMapped,      // a physical handle mapped in a reservation
  kUnmapped,    // the device's address space, with nothing there: never given, freed, or reserved only
};

// The range of addresses around the queried one in which everything is equal.
struct Region {
  RegionKind kind = RegionKind::kForeign;
  uint64_t begin = 0, end = ~uint64_t{0};
  bool accessible = true;  // kMapped: cuMemSetAccess was called
  bool* arena = nullptr;   // kAllocation, kMapped: an allocator hands out parts of it (set by the checker)
  int device = -1;         // kAllocation, kMapped
  UseSet* uses = nullptr;  // kAllocation, kMapped: uses outside every block
};

class MemoryView {
 public:
  virtual ~MemoryView() = default;
  virtual Region Find(uint64_t address) = 0;  // O(log regions)
  virtual uint64_t Generation() const = 0;    // changes when any answer of Find changes
};

}  // namespace simgpu
