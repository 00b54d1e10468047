#include "preload/torch/history.h"

#include <time.h>

#include <algorithm>
#include <new>

namespace hotpack_torch {

History& TheHistory() {
  static History* const history = new History;  // releases come until the very end of the process
  return *history;
}

bool History::Record(uint64_t entries, bool clear) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (clear || entries != capacity_) {
    const std::vector<hotpack_torch_event> kept = std::move(ring_);
    const size_t first = next_;
    ring_.clear();
    next_ = 0;
    if (!clear && !kept.empty()) {  // the latest that fit
      const size_t count = std::min<uint64_t>(entries, kept.size());
      for (size_t i = kept.size() - count; i < kept.size(); ++i) ring_.push_back(kept[(first + i) % kept.size()]);
    }
  }
  if (clear || entries == 0) live_.clear();
  capacity_ = entries;
  on_.store(entries > 0);
  return true;
}

void History::Note(hotpack_torch_action action, int device, const void* address, uint64_t bytes,
                   const void* stream) try {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  hotpack_torch_event event = {};
  event.address = reinterpret_cast<uint64_t>(address);
  event.bytes = bytes;
  event.stream = reinterpret_cast<uint64_t>(stream);
  event.time_us = int64_t{now.tv_sec} * 1000000 + now.tv_nsec / 1000;
  event.action = action;
  event.device = device;
  std::lock_guard<std::mutex> lock(mutex_);
  if (capacity_ == 0) return;
  if (ring_.size() < capacity_) {
    ring_.push_back(event);
  } else {
    ring_[next_] = event;
    next_ = (next_ + 1) % ring_.size();
  }
  if (action == HOTPACK_TORCH_ALLOC) live_[event.address] = event;
  if (action == HOTPACK_TORCH_FREE) live_.erase(event.address);
} catch (const std::bad_alloc&) {
  // Out of host memory: the earlier events stay.
}

std::vector<hotpack_torch_event> History::Events() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<hotpack_torch_event> events(ring_.begin() + static_cast<ptrdiff_t>(next_), ring_.end());
  events.insert(events.end(), ring_.begin(), ring_.begin() + static_cast<ptrdiff_t>(next_));
  return events;
}

std::vector<hotpack_torch_event> History::Live() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<hotpack_torch_event> blocks;
  blocks.reserve(live_.size());
  for (const auto& [address, event] : live_) blocks.push_back(event);
  return blocks;
}

}  // namespace hotpack_torch

using hotpack_torch::TheHistory;

namespace {

size_t Copy(const std::vector<hotpack_torch_event>& all, hotpack_torch_event* out, size_t capacity) {
  std::copy_n(all.begin(), std::min(capacity, all.size()), out);
  return all.size();
}

}  // namespace

extern "C" {

int hotpack_torch_record(uint64_t entries, int clear) try {
  return TheHistory().Record(entries, clear != 0) ? 0 : -1;
} catch (...) {
  return -1;
}

size_t hotpack_torch_events(hotpack_torch_event* events, size_t capacity) try {
  return Copy(TheHistory().Events(), events, capacity);
} catch (...) {
  return 0;
}

size_t hotpack_torch_live(hotpack_torch_event* blocks, size_t capacity) try {
  return Copy(TheHistory().Live(), blocks, capacity);
} catch (...) {
  return 0;
}

void hotpack_torch_mark_snapshot(int device) {
  if (TheHistory().on()) TheHistory().Note(HOTPACK_TORCH_SNAPSHOT, device, nullptr, 0, nullptr);
}

}  // extern "C"
