#include "runtime/memory/managed_spill.h"

#include <algorithm>

namespace hotpack {
namespace {

constexpr uint64_t kGrain = uint64_t{2} << 20;
constexpr int kLengthBits = 27;
constexpr uint64_t kLengthMask = (uint64_t{1} << kLengthBits) - 1;

uint64_t Up(uint64_t bytes) { return (bytes + kGrain - 1) / kGrain * kGrain; }

}  // namespace

// At most 64 segments of the usual size, so that the table always has an entry for those of large blocks.
ManagedSpill::ManagedSpill(uint64_t limit_bytes)
    : limit_(std::min(limit_bytes, kLengthMask * kPage)), least_(Up(std::max(uint64_t{64} << 20, limit_ / 64))) {}

bool ManagedSpill::Owns(DeviceAddress address) const {
  const size_t count = count_.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t word = published_[i].load(std::memory_order_acquire);
    const DeviceAddress base = (word >> kLengthBits) * kPage;
    if (address - base < (word & kLengthMask) * kPage) return true;
  }
  return false;
}

bool ManagedSpill::TryAllocate(uint64_t bytes, DeviceAddress* address) {
  for (Segment& segment : segments_) {
    if (segment.base == 0 || !segment.free->BestFit(bytes, address)) continue;
    segment.free->Remove(*address, bytes);
    used_ += bytes;
    peak_ = std::max(peak_, used_);
    return true;
  }
  return false;
}

void ManagedSpill::Free(DeviceAddress address, uint64_t bytes) {
  for (Segment& segment : segments_) {
    if (segment.base == 0 || address - segment.base >= segment.bytes) continue;
    segment.free->Add(address, bytes);
    used_ -= bytes;
    return;
  }
}

uint64_t ManagedSpill::BeginGrowth(uint64_t bytes) {
  const uint64_t left = limit_ - total_, needed = Up(bytes);
  if (needed > left) return 0;
  const uint64_t segment = std::max(needed, std::min(least_, left / kGrain * kGrain));
  total_ += segment;
  return segment;
}

bool ManagedSpill::FinishGrowth(uint64_t segment, DeviceAddress base) {
  const auto free = std::find_if(segments_.begin(), segments_.end(), [](const Segment& s) { return s.base == 0; });
  if (base == 0 || base % kPage != 0 || free == segments_.end()) {
    total_ -= segment;
    return base == 0;
  }
  free->base = base;
  free->bytes = segment;
  free->free = std::make_unique<FreeRanges>(&nodes_);
  free->free->Add(base, segment);
  Publish(static_cast<size_t>(free - segments_.begin()));
  return true;
}

bool ManagedSpill::TakeEmpty(DeviceAddress* base, uint64_t* segment) {
  for (Segment& s : segments_) {
    if (s.base == 0 || s.free->total() != s.bytes) continue;
    *base = s.base;
    *segment = s.bytes;
    total_ -= s.bytes;
    s = {};
    Publish(static_cast<size_t>(&s - segments_.data()));
    return true;
  }
  return false;
}

void ManagedSpill::PutBack(DeviceAddress base, uint64_t segment) {
  total_ += segment;
  FinishGrowth(segment, base);
}

void ManagedSpill::Publish(size_t index) {
  const Segment& segment = segments_[index];
  published_[index].store((segment.base / kPage) << kLengthBits | segment.bytes / kPage, std::memory_order_release);
  if (index >= count_.load(std::memory_order_relaxed)) count_.store(index + 1, std::memory_order_release);
}

}  // namespace hotpack
