// The figures of torch.cuda.memory_stats, counted at each request and release.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "preload/torch/hotpack_torch.h"

namespace hotpack_torch {

inline constexpr int kDevices = 64;
inline constexpr size_t kSmall = size_t{1} << 20;  // PyTorch's small pool: requests of at most this size

inline size_t RoundUp(size_t bytes) { return (bytes + 511) & ~size_t{511}; }

// Figures of one device. Thread-safe.
class Figures {
 public:
  void Allocated(size_t bytes);
  void Freed(size_t bytes);
  void OutOfMemory();
  void SetFraction(double fraction);
  void ResetPeak();
  void ResetAccumulated();
  hotpack_torch_stats Get() const;  // without segments and reserved bytes

 private:
  mutable std::mutex mutex_;
  hotpack_torch_stats stats_ = {.fraction = 1};
};

// Returns null if there is no such device.
Figures* FiguresOf(int device);

}  // namespace hotpack_torch
