// Places blocks of which only pairs are known: which two may never overlap. The packer needs clock values. An envelope
// with mistakes has none: each of them conflicts with what another entry conflicts with.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "packer/types.h"

namespace hotpack {

// A symmetric relation of `blocks` blocks, as bits: blocks² / 8 bytes. Not thread-safe.
class ConflictRows {
 public:
  explicit ConflictRows(size_t blocks) : words_((blocks + 63) / 64), bits_(blocks * words_, 0) {}

  void Set(size_t a, size_t b) {
    bits_[a * words_ + b / 64] |= uint64_t{1} << (b % 64);
    bits_[b * words_ + a / 64] |= uint64_t{1} << (a % 64);
  }
  bool At(size_t a, size_t b) const { return (bits_[a * words_ + b / 64] >> (b % 64) & 1) != 0; }
  const uint64_t* Row(size_t a) const { return bits_.data() + a * words_; }  // bit b % 64 of word b / 64: At(a, b)

 private:
  const size_t words_;
  std::vector<uint64_t> bits_;
};

struct ConflictPlacementOptions {
  Bytes enough = 0;            // bytes: a height that need not be improved
  uint64_t work = 20'000'000;  // pairs to compare, for improving the height
  Bytes small = 0;             // bytes: smaller blocks lie together, below the others
  // By block. Those with larger keys are placed first; of equal ones, the larger blocks. null: all keys are equal.
  const std::vector<Bytes>* keys = nullptr;
  const std::atomic<bool>* cancel = nullptr;  // may be set from another thread: the rest is stacked
  // Pairs that had better keep apart: relations that each include the one before it, and all conflicts. null: none.
  const std::vector<ConflictRows>* wishes = nullptr;
  double wish_cost = 1.05;  // they may raise the height by this factor
};

// Returns placements in which no two blocks that conflict overlap: the lowest one found, and others that fulfil more
// wishes. Pinned blocks keep their pins and conflict with all: the rows need not have them, if they are the last ones.
// First fit, with the blocks in the order of their keys and sizes; then again and again with those earlier that lay on
// top (squeaky wheel, Joslin and Clements 1999). At least one placement is finished. Pure. O(blocks² + work).
std::vector<Placement> PlaceByConflicts(const Instance& instance, const ConflictRows& conflicts,
                                        const ConflictPlacementOptions& options);

// Returns how many pairs of blocks overlap against a wish: pairs of several relations count several times. O(blocks²).
uint64_t CountViolations(const Instance& instance, const Placement& placement, const std::vector<ConflictRows>& wishes);

}  // namespace hotpack
