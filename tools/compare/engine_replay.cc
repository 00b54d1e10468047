#include "tools/compare/engine_replay.h"

#include <algorithm>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "packer/block_unit.h"
#include "runtime/engine/engine.h"

namespace hotpack {
namespace {

constexpr uint64_t kChunk = uint64_t{2} << 20;
constexpr uint64_t kMax = uint64_t{1} << 40;  // of an unlimited device

// Device addresses without memory. Thread-safe.
class CountedDevice : public DeviceMemory {
 public:
  CountedDevice(uint64_t capacity, const ExtentLimits& extents)
      : limited_(capacity > 0), capacity_(capacity > 0 ? capacity : kMax), extents_(extents) {}

  uint64_t ChunkBytes() const override { return kChunk; }
  uint64_t TotalBytes() const override { return capacity_; }
  MemoryStatus Reserve(uint64_t bytes, DeviceAddress* base) override {
    std::lock_guard lock(mutex_);
    *base = next_address_;
    next_address_ += (bytes + kChunk - 1) / kChunk * kChunk;
    return MemoryStatus::kOk;
  }
  MemoryStatus Unreserve(DeviceAddress, uint64_t) override { return MemoryStatus::kOk; }
  ExtentLimits Extents() const override { return extents_; }
  MemoryStatus CreateChunk(uint64_t bytes, ChunkHandle* chunk) override {
    std::lock_guard lock(mutex_);
    ++calls_;
    ++creates_;
    if (limited_ && held_ + bytes > capacity_) return MemoryStatus::kOutOfMemory;
    *chunk = ++last_chunk_;
    chunks_[*chunk] = bytes;
    held_ += bytes;
    peak_ = std::max(peak_, held_);
    window_peak_ = std::max(window_peak_, held_);
    return MemoryStatus::kOk;
  }
  // A request that the arena does not serve: a block of the driver's own. Returns no handle if the device is full.
  ChunkHandle CreateDriverBlock(uint64_t bytes) {
    ChunkHandle block = 0;
    return CreateChunk((bytes + kChunk - 1) / kChunk * kChunk, &block) == MemoryStatus::kOk ? block : 0;
  }
  MemoryStatus ReleaseChunk(ChunkHandle chunk) override {
    std::lock_guard lock(mutex_);
    ++calls_;
    held_ -= chunks_[chunk];
    chunks_.erase(chunk);
    return MemoryStatus::kOk;
  }
  MemoryStatus Map(DeviceAddress, uint64_t, ChunkHandle) override { return Count(&maps_); }
  MemoryStatus Enable(DeviceAddress, uint64_t) override { return Count(&accesses_); }
  MemoryStatus Unmap(DeviceAddress, uint64_t) override { return Count(&unmaps_); }
  bool Synchronize() override {
    std::lock_guard lock(mutex_);
    ++synchronizations_;
    return true;
  }

  uint64_t AvailableBytes() override {
    std::lock_guard lock(mutex_);
    return capacity_ - held_;
  }

  void BeginWindow() {
    std::lock_guard lock(mutex_);
    window_peak_ = held_;
  }
  uint64_t window_peak() {
    std::lock_guard lock(mutex_);
    return window_peak_;
  }
  void Figures(EngineReplay* replay) {
    std::lock_guard lock(mutex_);
    replay->reserved_peak = peak_;
    replay->device_calls = calls_;
    replay->synchronizations = synchronizations_;
    replay->creates = creates_;
    replay->maps = maps_;
    replay->accesses = accesses_;
  }

 private:
  MemoryStatus Count(uint64_t* calls) {
    std::lock_guard lock(mutex_);
    ++calls_;
    ++*calls;
    return MemoryStatus::kOk;
  }

  const bool limited_;
  const uint64_t capacity_;
  const ExtentLimits extents_;
  std::mutex mutex_;
  DeviceAddress next_address_ = uint64_t{1} << 40;
  ChunkHandle last_chunk_ = 0;
  absl::flat_hash_map<ChunkHandle, uint64_t> chunks_;  // their bytes
  uint64_t held_ = 0, peak_ = 0, window_peak_ = 0;
  uint64_t calls_ = 0, creates_ = 0, maps_ = 0, accesses_ = 0, unmaps_ = 0, synchronizations_ = 0;
};

// Reads the engine's figures at each mark.
class IterationCounter {
 public:
  IterationCounter(Engine* engine, std::vector<EngineIteration>* iterations)
      : engine_(engine), iterations_(iterations) {}

  void Request(uint64_t bytes) {
    live_ += UnitsOf(bytes) * kBlockUnit;
    now_.live_peak = std::max(now_.live_peak, live_);
    ++now_.requests;
  }
  void Release(uint64_t bytes) { live_ -= UnitsOf(bytes) * kBlockUnit; }
  void Close() {
    const hotpack_stats stats = engine_->Stats();
    now_.planned = stats.planned - planned_;
    planned_ = stats.planned;
    now_.plans = stats.plans;
    now_.held_peak = engine_->Usage().held_peak;
    engine_->ResetPeak();
    if (now_.requests > 0) iterations_->push_back(now_);
    now_ = {};
    now_.live_peak = live_;
  }

 private:
  Engine* const engine_;
  std::vector<EngineIteration>* const iterations_;
  EngineIteration now_;
  uint64_t live_ = 0, planned_ = 0;
};

}  // namespace

EngineReplay ReplayOnEngine(const Trace& trace, const PeerRecording& recording, uint64_t capacity,
                            const ExtentLimits& extents, bool envelopes) {
  EngineReplay replay;
  CountedDevice device(capacity, extents);
  EngineOptions options;
  options.logical_time = true;
  options.plan_time_limit_ns = kLogicalPlanLimitNs;
  options.envelopes = envelopes;
  Engine engine(&device, options);
  struct LiveBlock {
    DeviceAddress address;
    uint64_t bytes;
    ChunkHandle driver_block;  // 0: the arena's
  };
  absl::flat_hash_map<uint64_t, LiveBlock> live;
  const bool windowed = recording.window_begin < recording.window_end;
  size_t position = 0;  // in recording.events
  uint64_t request = 0;
  IterationCounter iterations(&engine, &replay.iterations);
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kMark) {
      iterations.Close();
      engine.Mark();
    }
    if (event.kind == EventKind::kExpect) engine.ExpectMarks();
    if (event.kind == EventKind::kInterrupt) engine.Interrupt();
    if (event.kind == EventKind::kResume) engine.Resume();
    if (event.kind == EventKind::kRelease) {
      auto block = live.find(event.id);
      if (block == live.end()) continue;
      if (block->second.driver_block != 0) {
        device.ReleaseChunk(block->second.driver_block);
      } else {
        engine.Release(block->second.address, event.stream);
      }
      iterations.Release(block->second.bytes);
      live.erase(block);
      ++position;
    }
    if (event.kind != EventKind::kAllocate || event.bytes == 0) continue;
    if (windowed && position == recording.window_begin) device.BeginWindow();
    if (windowed && position == recording.window_end) replay.reserved_window = device.window_peak();
    DeviceAddress address = 0;
    const EngineStatus status = engine.Allocate(event.bytes, event.stream, &address);
    ChunkHandle driver_block = 0;
    if (status == EngineStatus::kOutOfMemory) {  // as preload/capi/allocate.cc does
      engine.NotePassedThrough();
      engine.Trim();
      driver_block = device.CreateDriverBlock(event.bytes);
    }
    if (status != EngineStatus::kOk && driver_block == 0) {
      replay.out_of_memory = true;
      replay.failed_request = request;
      replay.failed_bytes = event.bytes;
      break;
    }
    live[event.id] = {address, event.bytes, driver_block};
    iterations.Request(event.bytes);
    ++request;
    ++position;
  }
  device.Figures(&replay);
  if (replay.out_of_memory) {
    replay.reserved_window = 0;
    return replay;
  }
  if (!windowed) {
    replay.reserved_window = replay.reserved_peak;
  } else if (recording.window_end == recording.events.size()) {
    replay.reserved_window = device.window_peak();
  }
  iterations.Close();
  const hotpack_stats stats = engine.Stats();
  replay.reserved_steady = stats.reserved_steady;
  replay.planning_ns = stats.planning_ns;
  return replay;
}

}  // namespace hotpack
