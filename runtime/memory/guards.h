// Debug mode.
// - Gaps around the blocks: a write out of bounds hits no neighbour, and is found when the block is released.
// - A pattern over released memory: data read from it later can be recognised.
//
//   engine's block  ├── gap ──┤├──── the program's block ────┤├── rest of 512 + gap ──┤
//   filled with      A7 A7 A7    (as it was)                   A7 A7 A7                     at the request
//                              DB DB DB                                                     at the release (poison)
//
// The bytes are written and read on a stream of hotpack's own when the device is idle. While a stream is capturing, the
// device cannot be waited for: blocks of that time have gaps, but the gaps are not checked.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/memory/device_memory.h"

namespace hotpack {

struct GuardOptions {
  uint64_t gap_bytes = 0;  // before and after each block; a multiple of 512; 0: no gaps
  bool poison = false;     // released memory is overwritten
  bool on() const { return gap_bytes != 0 || poison; }
};

// Identifies a request for messages: its ordinal in the run, and its position in the iteration if there is a script.
struct GuardedRequest {
  uint64_t ordinal = 0;       // of the run; UINT64_MAX: not monitored
  uint64_t in_iteration = 0;  // from 0
  bool has_iteration = false;
};

// Thread-safe. Every request and release waits for the device and calls the driver: this is for debugging only.
class Guards {
 public:
  static constexpr uint8_t kGuardByte = 0xA7, kPoisonByte = 0xDB;
  static constexpr int kMaxReports = 20;
  using LogLine = void (*)(const char* line);

  // `memory` must outlive this object. `say` takes one line without its end; null: no lines.
  Guards(DeviceMemory* memory, const GuardOptions& options, LogLine log);

  // Returns the size to request from the engine for a block of `bytes`.
  uint64_t Padded(uint64_t bytes) const { return bytes + 2 * options_.gap_bytes; }

  // Fills the gaps of the engine's block at `outer`. Returns where the program's `bytes` begin.
  DeviceAddress Given(DeviceAddress outer, uint64_t bytes, const GuardedRequest& request);
  // Checks the gaps of the block that the program releases at `address`, and poisons it. Returns false if no block of
  // the program begins there. *outer: the engine's block.
  bool Returned(DeviceAddress address, DeviceAddress* outer);
  // Checks the gaps of all live blocks, including weights, which are released late or never. Reports each bad write
  // once. Checks nothing while a stream captures. Returns bad_writes().
  uint64_t CheckLive();
  // Finds the program's block that contains `address`: start, and bytes rounded up to 512.
  bool Find(DeviceAddress address, DeviceAddress* base, uint64_t* bytes);

  // Returns the largest sum of live blocks as the program requested them, each rounded up to 512: bytes.
  uint64_t live_peak();
  uint64_t bad_writes();  // found so far: at most one before and one after each block

 private:
  struct Block {
    uint64_t bytes = 0;
    GuardedRequest request;
    uint64_t serial = 0;   // distinguishes it from later blocks at its address
    bool guarded = false;  // the gaps are filled, and no bad write was found yet
  };
  struct BadByte {
    bool found = false;
    int64_t offset = 0;  // from the block's start
    uint8_t value = 0;
  };
  struct Finding {
    BadByte before, after;
    bool any() const { return before.found || after.found; }
  };
  uint64_t Tail(const Block& block) const;
  bool Fill(DeviceAddress address, const Block& block);
  bool Look(DeviceAddress from, uint64_t bytes, DeviceAddress block, BadByte* bad, bool last);
  Finding Check(DeviceAddress address, const Block& block);
  void Report(DeviceAddress address, const Block& block, const Finding& finding);
  void ReportOne(DeviceAddress address, const Block& block, const BadByte& bad, bool before);

  DeviceMemory* const memory_;
  const GuardOptions options_;
  const LogLine log_;
  std::mutex mutex_;                       // guards the members below; never held across a driver call
  std::map<DeviceAddress, Block> blocks_;  // by the program's address
  uint64_t live_bytes_ = 0, live_peak_ = 0;
  uint64_t next_serial_ = 0;
  uint64_t bad_writes_ = 0;
};

}  // namespace hotpack
