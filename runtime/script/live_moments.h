// Which entries of an envelope are live together, as a list of moments: sets of entries that were live at once. Two
// entries conflict if some moment has both.
//
// The list is an instance for the packer: moments are its clock values, and an entry is resident at those that have it.
// With one interval an entry, alternatives that never happen together would also add up.
#pragma once

#include <cstdint>
#include <vector>

#include "packer/types.h"

namespace hotpack {

// Not thread-safe. Memory: one bit for each pair of entries, and 4 bytes for each entry of a moment.
class LiveMoments {
 public:
  // A block of the entry was requested, or released. Returns from Born whether the entry was new to some live one.
  // O(live entries).
  bool Born(uint32_t entry);
  void Died(uint32_t entry);  // at least one block of it must be live
  // Ends the current moment, as a release does: what is live now is kept if any pair of it is new.
  void Close();

  bool Conflict(uint32_t a, uint32_t b) const;
  // Returns whether two blocks of the entry were live at once.
  bool Overlaps(uint32_t entry) const { return entry < overlaps_.size() && overlaps_[entry] != 0; }
  uint32_t LiveBlocks(uint32_t entry) const { return entry < live_count_.size() ? live_count_[entry] : 0; }
  const std::vector<std::vector<uint32_t>>& moments() const { return moments_; }

  // Returns the residency of each entry below `entries`: ascending, disjoint; empty if no moment has it. O(moments ·
  // entries).
  std::vector<absl::InlinedVector<Residency, 1>> Residencies(uint32_t entries) const;
  // Returns bytes of the host's memory, about. O(entries + moments).
  uint64_t HostBytes() const;
  // Returns the largest sum of units over the moments. `units`: by entry; 0 for those that do not count.
  uint64_t Load(const std::vector<uint32_t>& units) const;

 private:
  bool SetConflict(uint32_t a, uint32_t b);  // returns whether it is new
  void Reserve(uint32_t entry);

  std::vector<std::vector<uint64_t>> conflicts_;  // bits: row a, column b
  std::vector<uint8_t> overlaps_;
  std::vector<uint32_t> live_count_;  // blocks, by entry
  std::vector<uint32_t> live_;        // entries with live blocks
  std::vector<std::vector<uint32_t>> moments_;
  bool fresh_ = false;  // a pair of the live entries is in no moment yet
};

}  // namespace hotpack
