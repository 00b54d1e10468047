// What a training program itself knows of its blocks: which of its work uses which. For tests of what hotpack sees.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>

#include "bench/train/device.h"

namespace hotpack::train {

class UseLog {
 public:
  virtual ~UseLog() = default;
  // Work that was just submitted: `what` (a kernel, as __PRETTY_FUNCTION__ of its launch, or a copy) uses the blocks
  // that these point into; what points into none does not count.
  virtual void Note(const char* what, std::initializer_list<const void*> pointers) = 0;
};

// Null: nothing is logged.
inline UseLog* use_log = nullptr;

template <typename T>
const void* AsPointer(const T&) {
  return nullptr;
}
template <typename T>
const void* AsPointer(T* const& pointer) {
  return pointer;
}

// `device` with use_log set, as long as it lives. Writes, at its end, a line for each block in the order of their
// allocations to `path`:
//   BYTES USES FIRST LAST WHAT FIRST WHAT LAST
// with FIRST and LAST as ordinals of the work noted (-1: none) and tabs between. Throws std::runtime_error if it
// cannot.
std::unique_ptr<Device> LogUses(std::unique_ptr<Device> device, const std::string& path);

}  // namespace hotpack::train
