// The events of torch.cuda.memory._record_memory_history: a ring of the last ones, and the blocks live since it began.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "preload/torch/hotpack_torch.h"

namespace hotpack_torch {

// Thread-safe. Costs one load while off.
class History {
 public:
  bool on() const { return on_.load(std::memory_order_relaxed); }
  bool Record(uint64_t entries, bool clear);  // hotpack_torch_record
  void Note(hotpack_torch_action action, int device, const void* address, uint64_t bytes, const void* stream);
  // Return events, oldest first.
  std::vector<hotpack_torch_event> Events() const;
  std::vector<hotpack_torch_event> Live() const;

 private:
  std::atomic<bool> on_{false};
  mutable std::mutex mutex_;
  std::vector<hotpack_torch_event> ring_;
  uint64_t capacity_ = 0;
  size_t next_ = 0;  // in a full ring: the oldest
  std::unordered_map<uint64_t, hotpack_torch_event> live_;
};

History& TheHistory();

}  // namespace hotpack_torch
