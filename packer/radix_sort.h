// Sorts many numbers by 64-bit keys in linear time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hotpack {

struct KeyedIndex {
  uint64_t key;
  int32_t index;
};

// Sorts `items` by key. Stable: equal keys keep their order. Overwrites `scratch`; keep it to sort again without
// allocation. O(n) for each 11 bits in which keys differ, at worst six times. Short inputs are sorted by comparison.
// Thread-safe.
inline void StableSortByKey(std::vector<KeyedIndex>* items, std::vector<KeyedIndex>* scratch) {
  constexpr int kDigitBits = 11;
  constexpr size_t kBuckets = size_t{1} << kDigitBits;
  constexpr int kDigits = (64 + kDigitBits - 1) / kDigitBits;
  constexpr size_t kShort = 1024;  // below this, the tables cost more than comparisons
  const size_t count = items->size();
  if (count < kShort) {
    std::stable_sort(items->begin(), items->end(),
                     [](const KeyedIndex& a, const KeyedIndex& b) { return a.key < b.key; });
    return;
  }
  scratch->resize(count);
  uint64_t differing = 0;
  for (const KeyedIndex& item : *items) differing |= item.key ^ items->front().key;
  for (int digit = 0; digit < kDigits; ++digit) {
    const int shift = digit * kDigitBits;
    if ((differing >> shift & (kBuckets - 1)) == 0) continue;
    std::array<uint32_t, kBuckets> next{};  // position of the bucket's next item
    for (const KeyedIndex& item : *items) ++next[item.key >> shift & (kBuckets - 1)];
    uint32_t sum = 0;
    for (uint32_t& start : next) {
      const uint32_t size = start;
      start = sum;
      sum += size;
    }
    for (const KeyedIndex& item : *items) (*scratch)[next[item.key >> shift & (kBuckets - 1)]++] = item;
    items->swap(*scratch);
  }
}

}  // namespace hotpack
