#include "preload/torch/figures.h"

#include <algorithm>
#include <cstring>

#include "preload/torch/graph_pools.h"
#include "runtime/include/hotpack.h"

namespace hotpack_torch {
namespace {

Figures figures[kDevices];

void Raise(hotpack_torch_stat* stat, uint64_t by) {
  stat->current += by;
  stat->allocated += by;
  stat->peak = std::max(stat->peak, stat->current);
}

void Lower(hotpack_torch_stat* stat, uint64_t by) {
  stat->current -= std::min(by, stat->current);
  stat->freed += by;
}

// Calls function(stat) for each figure that counts since some moment.
template <typename Function>
void ForEachStat(hotpack_torch_stats* stats, Function function) {
  for (auto* group : {stats->allocation, stats->allocated_bytes, stats->requested_bytes}) {
    for (int pool = 0; pool < 3; ++pool) function(&group[pool]);
  }
}

}  // namespace

Figures* FiguresOf(int device) { return device >= 0 && device < kDevices ? &figures[device] : nullptr; }

void Figures::Allocated(size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const int pool : {0, bytes <= kSmall ? 1 : 2}) {
    Raise(&stats_.allocation[pool], 1);
    Raise(&stats_.allocated_bytes[pool], RoundUp(bytes));
    Raise(&stats_.requested_bytes[pool], bytes);
  }
}

void Figures::Freed(size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const int pool : {0, bytes <= kSmall ? 1 : 2}) {
    Lower(&stats_.allocation[pool], 1);
    Lower(&stats_.allocated_bytes[pool], RoundUp(bytes));
    Lower(&stats_.requested_bytes[pool], bytes);
  }
}

void Figures::OutOfMemory() {
  std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.num_ooms;
}

void Figures::SetFraction(double fraction) {
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.fraction = fraction;
}

void Figures::ResetPeak() {
  std::lock_guard<std::mutex> lock(mutex_);
  ForEachStat(&stats_, [](hotpack_torch_stat* stat) { stat->peak = stat->current; });
}

void Figures::ResetAccumulated() {
  std::lock_guard<std::mutex> lock(mutex_);
  ForEachStat(&stats_, [](hotpack_torch_stat* stat) { stat->allocated = stat->freed = 0; });
  stats_.num_ooms = 0;
}

hotpack_torch_stats Figures::Get() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

}  // namespace hotpack_torch

using hotpack_torch::FiguresOf;

extern "C" {

int hotpack_torch_get_stats(int device, hotpack_torch_stats* stats, size_t size) {
  const hotpack_torch::Figures* figures = FiguresOf(device);
  if (figures == nullptr || stats == nullptr) return -1;
  hotpack_torch_stats all = figures->Get();
  hotpack_memory memory = {};
  hotpack_get_memory(device, &memory, sizeof(memory));
  const hotpack_torch::PoolBytes pools = hotpack_torch::Pools().Bytes(device);
  all.segment.current = hotpack_list_mapped(device, nullptr, 0) + pools.segments;
  all.segment.peak = all.segment.current;
  all.reserved_bytes.current = memory.reserved + pools.held;
  all.reserved_bytes.peak = memory.reserved_peak + pools.held_peak;
  std::memset(stats, 0, size);
  std::memcpy(stats, &all, std::min(size, sizeof(all)));
  return 0;
}

int hotpack_torch_reset_peak(int device) {
  hotpack_torch::Figures* figures = FiguresOf(device);
  if (figures == nullptr) return -1;
  figures->ResetPeak();
  hotpack_torch::Pools().ResetPeak(device);
  hotpack_reset_peak(device);
  return 0;
}

int hotpack_torch_reset_accumulated(int device) {
  hotpack_torch::Figures* figures = FiguresOf(device);
  if (figures == nullptr) return -1;
  figures->ResetAccumulated();
  return 0;
}

}  // extern "C"
