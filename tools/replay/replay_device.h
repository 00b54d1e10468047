// The player's interface to a device. Implementations: CudaReplayDevice (replay_cuda.h), a recording one in tests.
#pragma once

#include <cstdint>
#include <string>

namespace hotpack {

// A live block of the player.
struct ReplayBlock {
  uint64_t address = 0;  // 0: none
  uint64_t bytes = 0;
  uint64_t id = 0;      // unique in the run
  uint32_t stream = 0;  // ordinal of the requesting stream, 0: the default one
};

// All functions return an empty string or the error.
class ReplayDevice {
 public:
  virtual ~ReplayDevice() = default;
  virtual std::string Allocate(uint64_t bytes, uint32_t stream, uint64_t* address) = 0;
  // Work submitted to `block`'s stream is finished or ordered before the release on `stream`.
  virtual std::string Release(const ReplayBlock& block, uint32_t stream) = 0;
  // Submits work on the block's stream that writes a pattern made from its id to both ends.
  virtual std::string Fill(const ReplayBlock& block) = 0;
  // Submits work on the block's stream that counts a mismatch if the pattern is missing.
  virtual std::string Check(const ReplayBlock& block) = 0;
  virtual std::string Synchronize() = 0;
  virtual uint64_t Mismatches() = 0;  // after Synchronize
};

// The functions of hotpack's C interface that a replayed program calls; null: do not call.
struct ReplayHooks {
  void (*step)() = nullptr;
  void (*expect)() = nullptr;
  void (*interrupt)() = nullptr;
  void (*resume)() = nullptr;
  int (*wait_plan)(int timeout_ms) = nullptr;
};

}  // namespace hotpack
