// Maps an offset to the planned block that lives there: one slot for each distinct offset of a script.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "runtime/script/script.h"

namespace hotpack {

// Open addressing, at most half full, without wrap-around (spare slots follow at the end). Built once per script. After
// that only the entries change. Not thread-safe.
class LiveSlots {
 public:
  struct Slot {
    uint32_t offset = kNone;
    uint32_t entry = kNone;  // the script's entry whose block lives at the offset; kNone: none does
  };

  void Build(const std::vector<uint32_t>& offsets) {
    size_t capacity = std::bit_ceil(std::max<size_t>(2, 2 * offsets.size()));
    shift_ = 32 - static_cast<uint32_t>(std::countr_zero(capacity));
    slots_.assign(capacity + 1, {});
    for (uint32_t offset : offsets) {
      uint32_t i = Hash(offset);
      while (slots_[i].offset != kNone && slots_[i].offset != offset) {
        if (++i + 1 == slots_.size()) slots_.push_back({});  // the last slot stays empty: it ends every search
      }
      slots_[i].offset = offset;
    }
  }
  void Clear() {
    for (Slot& slot : slots_) slot.entry = kNone;
  }
  // Returns the slot of `offset`; null if no planned block begins there. O(1).
  Slot* Find(uint32_t offset) {
    for (Slot* slot = &slots_[Hash(offset)];; ++slot) {
      if (slot->offset == offset) return slot;
      if (slot->offset == kNone) return nullptr;
    }
  }
  uint32_t IndexOf(const Slot* slot) const { return static_cast<uint32_t>(slot - slots_.data()); }
  Slot& operator[](uint32_t index) { return slots_[index]; }
  const std::vector<Slot>& slots() const { return slots_; }

 private:
  uint32_t Hash(uint32_t offset) const { return (offset * 0x9E3779B1u) >> shift_; }
  std::vector<Slot> slots_{2};
  uint32_t shift_ = 31;
};

}  // namespace hotpack
