// Failed states of the exact search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "packer/random.h"
#include "packer/types.h"

namespace hotpack {

// A state is the capacity and the set of unplaced blocks with their heads. It is identified by a 128-bit hash: the sum
// of one share per block, so that a change costs O(1). The probability that any two of 10^10 states collide is 10^-19.
// Stores up to kStates of them, each at the one position given by its hash; a later state overwrites an earlier one.
// Not thread-safe.
class StateTable {
 public:
  struct State {
    uint64_t low;
    uint64_t high;
    bool operator==(const State&) const = default;
  };

  explicit StateTable(int32_t blocks) {
    Random random(0x6a09e667f3bcc908);
    for (int32_t block = 0; block < blocks; ++block) multipliers_.push_back({random.Next() | 1, random.Next() | 1});
  }

  // Starts with the state without blocks.
  void Begin(Bytes capacity) {
    const auto bits = static_cast<uint64_t>(capacity);
    present_ = {bits, bits * 0x9e3779b97f4a7c15};
  }
  void Add(int32_t block, Offset head) {
    const State share = ShareOf(block, head);
    present_.low += share.low;
    present_.high += share.high;
  }
  void Remove(int32_t block, Offset head) {
    const State share = ShareOf(block, head);
    present_.low -= share.low;
    present_.high -= share.high;
  }
  const State& present() const { return present_; }
  void Return(const State& state) { present_ = state; }

  bool IsHopeless() const { return !hopeless_.empty() && hopeless_[present_.low % kStates] == present_; }
  void RememberHopeless(const State& state) {
    if (hopeless_.empty()) hopeless_.assign(kStates, {0, 0});
    hopeless_[state.low % kStates] = state;
  }

 private:
  static constexpr size_t kStates = size_t{1} << 17;

  // Folded products of 64-bit numbers, so that every bit of the head affects the whole hash.
  State ShareOf(int32_t block, Offset offset) const {
    const auto fold = [](uint64_t a, uint64_t b) {
      const auto product = static_cast<unsigned __int128>(a) * b;
      return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    };
    const auto head = static_cast<uint64_t>(offset);
    const State& by = multipliers_[block];
    return {fold(head ^ by.high, by.low), fold(head + 0x9e3779b97f4a7c15, by.high ^ (head << 32))};
  }

  State present_{0, 0};
  std::vector<State> multipliers_;  // by block
  std::vector<State> hopeless_;     // empty until there is one
};

}  // namespace hotpack
