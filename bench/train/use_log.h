// A training program's own record of which work uses which blocks. For tests of hotpack's record.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>

#include "bench/train/device.h"

namespace hotpack::train {

class UseLog {
 public:
  virtual ~UseLog() = default;
  // Records work that was just submitted. `what` is a kernel (the __PRETTY_FUNCTION__ of its launch) or a copy. It uses
  // the blocks into which `pointers` point. Pointers outside all blocks are ignored.
  virtual void Note(const char* what, std::initializer_list<const void*> pointers) = 0;
};

// Null: no log.
inline UseLog* use_log = nullptr;

template <typename T>
const void* AsPointer(const T&) {
  return nullptr;
}
template <typename T>
const void* AsPointer(T* const& pointer) {
  return pointer;
}

// Returns `device` with use_log set for its lifetime. At its end it writes to `path` one line for each block, in the
// order of their allocations, with tabs in between:
//   BYTES USES FIRST LAST WHAT FIRST WHAT LAST
// FIRST and LAST are ordinals of recorded work (-1: none). Throws std::runtime_error if it cannot write.
std::unique_ptr<Device> LogUses(std::unique_ptr<Device> device, const std::string& path);

}  // namespace hotpack::train
