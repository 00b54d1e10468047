// The driver's side of a simulated policy: its memory, and how much of it is taken.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hotpack {

// Not thread-safe.
class ModelDevice {
 public:
  explicit ModelDevice(uint64_t capacity) : capacity_(capacity) {}  // bytes; 0: no limit

  // Takes `bytes` from the driver with `calls` calls. Returns false if less is left; the calls count anyway.
  bool Take(uint64_t bytes, uint64_t calls) {
    calls_ += calls;
    if (capacity_ > 0 && bytes > capacity_ - held_) return false;
    held_ += bytes;
    peak_ = std::max(peak_, held_);
    window_peak_ = std::max(window_peak_, held_);
    return true;
  }
  // Gives `bytes` back. `waits`: how often the host waits for the device meanwhile.
  void Give(uint64_t bytes, uint64_t calls, uint64_t waits) {
    held_ -= bytes;
    calls_ += calls;
    waits_ += waits;
  }
  void BeginWindow() { window_peak_ = held_; }

  uint64_t capacity() const { return capacity_; }        // bytes; 0: no limit
  uint64_t peak() const { return peak_; }                // the most held at once
  uint64_t window_peak() const { return window_peak_; }  // ... since BeginWindow()
  uint64_t held() const { return held_; }
  uint64_t calls() const { return calls_; }
  uint64_t waits() const { return waits_; }

 private:
  const uint64_t capacity_;
  uint64_t held_ = 0, peak_ = 0, window_peak_ = 0, calls_ = 0, waits_ = 0;
};

}  // namespace hotpack
