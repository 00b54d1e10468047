// Device memory that holds bytes written by a copy or a memset.
//
// Kernels compute nothing, so memory that a kernel got cannot keep its bytes. A program would read back the old bytes,
// and its results would depend on an allocator's placement. Therefore one copy's (or memset's) bytes are forgotten as a
// whole, and read as zeros, once a kernel gets an address in them. Other bytes read back as written.
#pragma once

#include <cstdint>
#include <map>

namespace simgpu {

// Ranges that do not overlap. Not thread-safe: used under the driver's lock. O(log ranges), plus once for each removed
// range.
class Written {
 public:
  struct Range {
    uint64_t start = 0, bytes = 0;
  };

  // Adds one write of `bytes` bytes at `address` as its own range.
  void Add(uint64_t address, uint64_t bytes);

  // Removes the range; parts of writes outside it stay.
  void Remove(uint64_t address, uint64_t bytes);

  // Removes and returns the range that contains the address; 0 bytes: none.
  Range Take(uint64_t address);

  bool empty() const { return ends_.empty(); }

 private:
  std::map<uint64_t, uint64_t> ends_;  // start -> end
};

}  // namespace simgpu
