// Blocks that other processes use. Their release waits until the last of these is done with them (python/hotpack,
// _share.py), whatever the program does with their storage.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace hotpack_torch {

// Thread-safe, with one lock. Releases take it only while a block is held. May throw bad_alloc, except Drop.
class HeldBlocks {
 public:
  struct Release {
    size_t bytes;
    int device;
    void* stream;
  };

  // Holds the live block that starts at `pointer`, once more.
  void Hold(void* pointer);
  // Puts the block's release aside if it is held. Returns false if it is not.
  bool Defer(void* pointer, const Release& release) {
    return count_.load(std::memory_order_acquire) != 0 && DeferHeld(pointer, release);
  }
  // Ends one Hold. Returns the release that was put aside, after the last one.
  std::optional<Release> Drop(void* pointer);

 private:
  struct Block {
    int holds = 0;
    std::optional<Release> release;
  };
  bool DeferHeld(void* pointer, const Release& release);

  std::mutex mutex_;
  std::unordered_map<void*, Block> blocks_;
  std::atomic<size_t> count_{0};  // of blocks_
};

// The one of the process. Never destroyed, since blocks come back until the very end.
HeldBlocks& Held();

}  // namespace hotpack_torch
