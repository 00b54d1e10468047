// The fragments that the followed script or envelope uses: memory next to blocks that stay, set aside in the arena.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/memory/arena.h"
#include "runtime/script/script.h"

namespace hotpack {

// Guarded by the engine's lock. O(fragments) unless noted.
class HeldFragments {
 public:
  explicit HeldFragments(Arena* arena) : arena_(arena) {}  // must outlive this object

  const std::vector<AddressRange>& ranges() const { return ranges_; }  // ascending
  // Returns whether all of `fragments` have their pages, or are held. O(chunks); O(fragments²).
  bool HavePages(const std::vector<Fragment>& fragments) const;
  bool Include(const std::vector<Fragment>& fragments) const;

  // Takes the free memory of the fragments. All must have pages, and none may be held.
  void Take(const std::vector<Fragment>& fragments);
  // Gives them back. `live`: the parts in use, ascending.
  void Free(const std::vector<AddressRange>& live);
  // Frees the parts of `range` that lie in no fragment.
  void FreeOutside(const AddressRange& range);

  // Returns whether the range lies in one of them. O(log fragments).
  bool Contain(const AddressRange& range) const { return Around(range).bytes > 0; }
  // Returns the one that has all of the range; empty: none has.
  AddressRange Around(const AddressRange& range) const;

 private:
  Arena* const arena_;
  std::vector<AddressRange> ranges_;
};

}  // namespace hotpack
