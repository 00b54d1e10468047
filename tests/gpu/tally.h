// Counts errors when memory passes from one owner to the next.
#pragma once

#include <string>

#include "tests/gpu/probe.h"

namespace hotpack::gpu {

inline constexpr unsigned char kOldByte = 0x5a;  // what the former owner keeps writing
inline constexpr unsigned char kNewByte = 0xa5;  // what must be there afterwards

// Its functions are not inline: they mean the legacy default stream, in units for per-thread default streams too.
class Tally {
 public:
  Tally();
  ~Tally();
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;

  // Device memory that Kernels::watch adds to.
  unsigned long long* wrong() { return wrong_; }

  // A new owner's block; all work on it is done. Looks at its bytes. `same_address`: it was an old owner's just before.
  void Block(const void* block, size_t bytes, bool same_address);

  // The finding `name`.
  void Judge(const Probe& probe, const std::string& name);

 private:
  unsigned long long* wrong_ = nullptr;
  size_t wrong_bytes_ = 0;
  int blocks_ = 0;
  int reused_ = 0;
};

}  // namespace hotpack::gpu
