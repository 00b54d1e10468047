// Counts errors when memory passes from one owner to the next.
#pragma once

#include <string>

#include "tests/gpu/probe.h"

namespace hotpack::gpu {

inline constexpr unsigned char kOldByte = 0x5a;  // the former owner keeps writing it
inline constexpr unsigned char kNewByte = 0xa5;  // the new owner's value

// Its functions are not inline, so that they use the legacy default stream also in units for per-thread default
// streams.
class Tally {
 public:
  Tally();
  ~Tally();
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;

  // Device memory that Kernels::watch adds to.
  unsigned long long* wrong() { return wrong_; }

  // Checks the bytes of a new owner's block after all work on it has ended. `same_address`: an old owner had it just
  // before.
  void Block(const void* block, size_t bytes, bool same_address);

  // Records the finding `name`.
  void Judge(const Probe& probe, const std::string& name);

 private:
  unsigned long long* wrong_ = nullptr;
  size_t wrong_bytes_ = 0;
  int blocks_ = 0;
  int reused_ = 0;
};

}  // namespace hotpack::gpu
