// Stands in for runtime/engine.cc until it is there: first fit in one reservation that only grows. Follows the
// interface's rules (no lock across a driver call), so that the hooks can be tested against it.
#include <atomic>
#include <map>
#include <mutex>

#include "profiler/trace_writer.h"
#include "runtime/engine.h"

namespace hotpack {
namespace {
constexpr uint64_t kReserve = 1ull << 40;
uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }
}  // namespace

class Engine::Impl {
 public:
  Impl(DeviceMemory* memory, const EngineOptions& options) : memory_(memory), trace_(options.trace) {
    stats_ = options.stats != nullptr ? options.stats : &own_stats_;
    stats_->steady_iteration = -1;
  }

  EngineStatus Allocate(uint64_t bytes, uint32_t stream, DeviceAddress* address) {
    if (bytes == 0) return EngineStatus::kInvalidValue;
    std::lock_guard<std::mutex> grow(grow_mutex_);  // held across driver calls: a stand-in may
    const EngineStatus status = EnsureReserved();
    if (status != EngineStatus::kOk) return status;
    const uint64_t size = RoundUp(bytes, 512);
    std::unique_lock<std::mutex> lock(mutex_);
    DeviceAddress at = base_.load();
    for (const auto& [start, block] : blocks_) {
      if (start - at >= size) break;
      at = start + RoundUp(block, 512);
    }
    lock.unlock();
    while (at + size > base_.load() + mapped_) {
      const MemoryStatus grown = Grow();
      if (grown == MemoryStatus::kOutOfMemory) return EngineStatus::kOutOfMemory;
      if (grown != MemoryStatus::kOk) return EngineStatus::kPassThrough;
    }
    lock.lock();
    blocks_[at] = bytes;
    live_ += size;
    stats_->requests++;
    stats_->dynamic++;
    if (live_ > stats_->live_peak) stats_->live_peak = live_;
    stats_->reserved_peak = mapped_;
    if (trace_ != nullptr) trace_->Append({EventKind::kAllocate, 0, 0, stream, at, bytes, 0});
    *address = at;
    return EngineStatus::kOk;
  }

  EngineStatus Release(DeviceAddress address) {
    if (!Owns(address)) return EngineStatus::kNotOurs;
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return EngineStatus::kInvalidValue;
    live_ -= RoundUp(found->second, 512);
    if (trace_ != nullptr) trace_->Append({EventKind::kRelease, 0, 0, 0, address, found->second, 0});
    blocks_.erase(found);
    return EngineStatus::kOk;
  }

  bool Owns(DeviceAddress address) const {
    const DeviceAddress base = base_.load();
    return base != 0 && address >= base && address < base + kReserve;
  }

  bool FindBlock(DeviceAddress address, DeviceAddress* base, uint64_t* bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto next = blocks_.upper_bound(address);
    if (next == blocks_.begin()) return false;
    --next;
    if (address >= next->first + next->second) return false;
    *base = next->first;
    *bytes = next->second;
    return true;
  }

  void Abandon() {
    abandoned_ = true;
    base_ = 0;
  }

  hotpack_stats Stats() {
    std::lock_guard<std::mutex> lock(mutex_);
    return *stats_;
  }
  void NotePassedThrough() { __atomic_fetch_add(&stats_->passed_through, 1, __ATOMIC_RELAXED); }
  void Mark() { __atomic_fetch_add(&stats_->iterations, 1, __ATOMIC_RELAXED); }

 private:
  EngineStatus EnsureReserved() {
    if (abandoned_) return EngineStatus::kPassThrough;
    if (base_ != 0) return EngineStatus::kOk;
    DeviceAddress base = 0;
    if (memory_->Reserve(kReserve, &base) != MemoryStatus::kOk) return EngineStatus::kPassThrough;
    base_ = base;
    return EngineStatus::kOk;
  }
  MemoryStatus Grow() {
    ChunkHandle chunk = 0;
    MemoryStatus status = memory_->CreateChunk(&chunk);
    if (status != MemoryStatus::kOk) return status;
    status = memory_->Map(base_.load() + mapped_, chunk);
    if (status == MemoryStatus::kOk) status = memory_->Enable(base_.load() + mapped_, memory_->ChunkBytes());
    if (status == MemoryStatus::kOk) mapped_ += memory_->ChunkBytes();
    return status;
  }

  DeviceMemory* const memory_;
  TraceWriter* const trace_;
  hotpack_stats own_stats_ = {};
  hotpack_stats* stats_;
  std::mutex grow_mutex_, mutex_;
  std::atomic<DeviceAddress> base_{0};
  std::atomic<bool> abandoned_{false};
  uint64_t mapped_ = 0, live_ = 0;
  std::map<DeviceAddress, uint64_t> blocks_;
};

Engine::Engine(DeviceMemory* memory, const EngineOptions& options) : impl_(new Impl(memory, options)) {}
Engine::~Engine() = default;
EngineStatus Engine::Allocate(uint64_t bytes, uint32_t stream, DeviceAddress* address) {
  return impl_->Allocate(bytes, stream, address);
}
EngineStatus Engine::Release(DeviceAddress address, uint32_t) { return impl_->Release(address); }
bool Engine::Owns(DeviceAddress address) const { return impl_->Owns(address); }
bool Engine::FindBlock(DeviceAddress address, DeviceAddress* base, uint64_t* bytes) {
  return impl_->FindBlock(address, base, bytes);
}
void Engine::Mark() { impl_->Mark(); }
void Engine::Interrupt() {}
void Engine::Resume() {}
bool Engine::WaitPlan(int) { return true; }
void Engine::NotePassedThrough() { impl_->NotePassedThrough(); }
hotpack_stats Engine::Stats() { return impl_->Stats(); }
void Engine::AbandonAfterFork() { impl_->Abandon(); }

}  // namespace hotpack
