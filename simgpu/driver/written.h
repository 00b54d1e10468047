// Which device memory holds what a copy or a memset wrote.
//
// Kernels compute nothing, so what they were handed cannot stay as it is: an answer that a program reads back would be
// whatever lay there before, and with it depend on where an allocator had put things. Therefore what one copy (or memset)
// wrote is forgotten as a whole, and reads as zeros, as soon as a kernel is handed an address in it. What no kernel was
// handed reads back as it was written.
#pragma once

#include <cstdint>
#include <map>

namespace simgpu {

// Ranges that do not overlap. Not thread-safe: used under the driver's lock. O(log ranges), and once for each range that
// goes.
class Written {
 public:
  struct Range {
    uint64_t start = 0, bytes = 0;
  };

  // One write of `bytes` bytes at `address`: a range of its own.
  void Add(uint64_t address, uint64_t bytes);

  // Nothing in the range is of interest any more: what reaches beyond is kept.
  void Remove(uint64_t address, uint64_t bytes);

  // Takes out the range that contains the address; 0 bytes: there is none.
  Range Take(uint64_t address);

  bool empty() const { return ends_.empty(); }

 private:
  std::map<uint64_t, uint64_t> ends_;  // start -> end
};

}  // namespace simgpu
