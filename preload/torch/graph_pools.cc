#include "preload/torch/graph_pools.h"

#include <algorithm>

#include "preload/torch/driver.h"
#include "preload/torch/figures.h"
#include "runtime/include/hotpack.h"

namespace hotpack_torch {
namespace {

constexpr uint64_t kSegment = uint64_t{2} << 20;  // the driver's own granularity

bool InArena(int device, uint64_t address) {
  std::vector<hotpack_extent> runs(hotpack_list_mapped(device, nullptr, 0));
  runs.resize(std::min(runs.size(), hotpack_list_mapped(device, runs.data(), runs.size())));
  return std::any_of(runs.begin(), runs.end(), [&](const hotpack_extent& run) {
    return address >= run.address && address - run.address < run.bytes;
  });
}

// Returns whether the process holds more of the device than hotpack_set_limit allows.
bool OverLimit(int device, uint64_t beside_the_arena) {
  hotpack_memory memory = {};
  hotpack_get_memory(device, &memory, sizeof(memory));  // also returns the limit of a device without an arena
  return memory.limit != UINT64_MAX && memory.reserved + beside_the_arena > memory.limit;
}

// While it lives, calls that a capture in global mode forbids are allowed (cuda.h, cuThreadExchangeStreamCaptureMode).
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Driver& driver) : driver_(driver) { driver_.ThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { driver_.ThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const Driver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace

GraphPools& Pools() {
  static GraphPools* const pools = new GraphPools;
  return *pools;
}

GraphPools::Pool* GraphPools::FindPool(int device, PoolId id) {
  for (Pool& pool : pools_) {
    if (pool.device == device && pool.id == id) return &pool;
  }
  return nullptr;
}

void GraphPools::Begin(int device, PoolId id, StreamFilter filter) {
  hotpack_capture_begin();  // until a request shows that there is no capture
  std::lock_guard<std::mutex> lock(mutex_);
  Pool* pool = FindPool(device, id);
  if (pool == nullptr) {
    pool = &pools_.emplace_front();
    pool->id = id;
    pool->device = device;
  }
  ++pool->uses;
  open_.push_front({pool, std::move(filter), true});
  open_count_.store(open_.size(), std::memory_order_release);
}

void GraphPools::End(int device, PoolId id) {
  bool announced = false;
  std::vector<Deferred> deferred;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = std::find_if(open_.begin(), open_.end(), [&](const Open& open) {
      return open.pool->device == device && open.pool->id == id;
    });
    if (found == open_.end()) return;
    announced = found->announced;
    open_.erase(found);
    open_count_.store(open_.size(), std::memory_order_release);
    if (open_.empty()) deferred.swap(deferred_);
  }
  if (announced) hotpack_capture_end();
  for (const Deferred& block : deferred)
    hotpack_torch_free(block.pointer, static_cast<ssize_t>(block.bytes), block.device, block.stream);
}

void GraphPools::Release(int device, PoolId id) {
  std::vector<uint64_t> idle;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Pool* pool = FindPool(device, id);
    if (pool == nullptr || --pool->uses > 0) return;
    idle = TakeIdle(pool);
  }
  GiveBack(device, idle);
}

// --- requests and releases -------------------------------------------------------------------------------------------

bool GraphPools::AllocateInOpen(int device, size_t bytes, void* stream, void** pointer) {
  bool no_capture = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = std::find_if(open_.begin(), open_.end(), [&](const Open& open) {
      return open.pool->device == device && (!open.filter || open.filter(stream));
    });
    if (found == open_.end()) return false;
    const Driver* driver = GetDriver();
    if (found->announced && driver != nullptr && !IsCapturing(*driver, stream)) {
      found->announced = false;  // torch.cuda.use_mem_pool, which may last long
      no_capture = true;
    }
    *pointer = Take(found->pool, RoundUp(bytes), stream);
    block_count_.store(blocks_.size(), std::memory_order_release);
  }
  if (no_capture) hotpack_capture_end();
  return true;
}

void* GraphPools::Take(Pool* pool, uint64_t bytes, void* stream) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    Segment* best_segment = nullptr;
    uint64_t best = 0, best_bytes = UINT64_MAX;
    for (auto& [base, segment] : pool->segments) {
      for (const auto& [address, piece] : segment.pieces) {
        const bool usable = piece.free && !piece.kept && (piece.fresh || piece.stream == stream);
        if (!usable || piece.bytes < bytes || piece.bytes >= best_bytes) continue;
        best_segment = &segment;
        best = address;
        best_bytes = piece.bytes;
      }
    }
    if (best_segment != nullptr) return Split(pool, best_segment, best, bytes, stream);
    if (!Grow(pool, bytes)) return nullptr;
  }
  return nullptr;
}

void* GraphPools::Split(Pool* pool, Segment* segment, uint64_t address, uint64_t bytes, void* stream) {
  Piece& piece = segment->pieces[address];
  if (piece.bytes > bytes) {
    Piece rest = piece;
    rest.bytes -= bytes;
    segment->pieces[address + bytes] = rest;
  }
  piece = {bytes, stream, false, false, false};
  segment->live += bytes;
  blocks_[address] = pool;
  return reinterpret_cast<void*>(address);
}

bool GraphPools::Grow(Pool* pool, uint64_t bytes) {
  const Driver* driver = GetDriver();
  if (driver == nullptr) return false;
  const uint64_t size = (bytes + kSegment - 1) / kSegment * kSegment;
  PoolBytes& counted = bytes_[pool->device];
  CUdeviceptr address = 0;
  bool in_arena = false;
  {
    const RelaxedCapture relaxed(*driver);
    if (driver->MemAlloc(&address, size) != CUDA_SUCCESS) return false;
    in_arena = InArena(pool->device, address);
    if (!in_arena && OverLimit(pool->device, counted.held + size)) {  // the arena keeps to the limit by itself
      driver->MemFree(address);
      return false;
    }
  }
  Segment& segment = pool->segments[address];
  segment.device = pool->device;
  segment.bytes = size;
  segment.counted = !in_arena;
  segment.pieces[address] = {size, nullptr, true, true, false};
  if (!segment.counted) return true;
  ++counted.segments;
  counted.held += size;
  counted.held_peak = std::max(counted.held_peak, counted.held);
  return true;
}

bool GraphPools::FreeBlock(void* pointer, void* stream) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  std::vector<uint64_t> idle;
  int device = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return false;
    Pool* pool = found->second;
    blocks_.erase(found);
    block_count_.store(blocks_.size(), std::memory_order_release);
    device = pool->device;
    Segment& segment = std::prev(pool->segments.upper_bound(address))->second;
    auto at = segment.pieces.find(address);
    segment.live -= at->second.bytes;
    at->second.free = true;
    at->second.stream = stream;
    const auto joins = [](const Piece& a, const Piece& b) {
      return a.free && b.free && a.fresh == b.fresh && a.stream == b.stream && !a.kept && !b.kept;
    };
    if (auto next = std::next(at); next != segment.pieces.end() && joins(at->second, next->second)) {
      at->second.bytes += next->second.bytes;
      segment.pieces.erase(next);
    }
    if (at != segment.pieces.begin() && joins(std::prev(at)->second, at->second)) {
      std::prev(at)->second.bytes += at->second.bytes;
      segment.pieces.erase(at);
    }
    if (pool->uses <= 0) idle = TakeIdle(pool);
  }
  GiveBack(device, idle);
  return true;
}

bool GraphPools::NoteUse(void* pointer) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto address = reinterpret_cast<uint64_t>(pointer);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return false;
  std::prev(found->second->segments.upper_bound(address))->second.pieces[address].kept = true;
  return true;
}

bool GraphPools::Defer(void* pointer, size_t bytes, int device, void* stream) {
  if (open_count_.load(std::memory_order_acquire) == 0) return false;
  const Driver* driver = GetDriver();
  if (driver == nullptr || !IsCapturing(*driver, stream)) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  if (open_.empty() || blocks_.count(reinterpret_cast<uint64_t>(pointer)) != 0) return false;
  deferred_.push_back({pointer, bytes, device, stream});
  return true;
}

// --- giving back -----------------------------------------------------------------------------------------------------

std::vector<uint64_t> GraphPools::TakeIdle(Pool* pool) {
  std::vector<uint64_t> idle;
  PoolBytes& counted = bytes_[pool->device];
  for (auto it = pool->segments.begin(); it != pool->segments.end();) {
    if (it->second.live > 0) {
      ++it;
      continue;
    }
    idle.push_back(it->first);
    if (it->second.counted) {
      --counted.segments;
      counted.held -= it->second.bytes;
    }
    it = pool->segments.erase(it);
  }
  if (pool->segments.empty()) pools_.remove_if([pool](const Pool& other) { return &other == pool; });
  return idle;
}

// cuMemFree waits for the work that may use the memory.
void GraphPools::GiveBack(int device, const std::vector<uint64_t>& segments) {
  if (segments.empty()) return;
  const Driver* driver = GetDriver();
  const DeviceScope scope(device);
  if (driver == nullptr || !scope.ok()) return;
  const RelaxedCapture relaxed(*driver);
  for (const uint64_t address : segments) driver->MemFree(address);
}

// --- figures ---------------------------------------------------------------------------------------------------------

PoolBytes GraphPools::Bytes(int device) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = bytes_.find(device);
  return found != bytes_.end() ? found->second : PoolBytes{};
}

void GraphPools::ResetPeak(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  PoolBytes& counted = bytes_[device];
  counted.held_peak = counted.held;
}

std::vector<hotpack_torch_segment> GraphPools::Segments(int device) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<hotpack_torch_segment> segments;
  for (const Pool& pool : pools_) {
    if (pool.device != device) continue;
    for (const auto& [address, segment] : pool.segments) {
      segments.push_back({address, segment.bytes, segment.live, {pool.id.first, pool.id.second}});
    }
  }
  return segments;
}

bool GraphPools::Find(void* pointer, size_t* bytes) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto address = reinterpret_cast<uint64_t>(pointer);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return false;
  *bytes = std::prev(found->second->segments.upper_bound(address))->second.pieces.at(address).bytes;
  return true;
}

}  // namespace hotpack_torch

// --- what PyTorch calls, with its own types by value
// -------------------------------------------------------------------

namespace hotpack_torch {
namespace {
using Filter = std::function<bool(CUstream)>;
}
}  // namespace hotpack_torch

#pragma GCC visibility push(default)
extern "C" {

// In C++ linkage, because of c10::cuda::MempoolId_t and std::function. PyTorch calls by address.
void hotpack_torch_begin_allocate_to_pool(int device, hotpack_torch::PoolId id, hotpack_torch::Filter filter) {
  hotpack_torch::Pools().Begin(device, id, [filter = std::move(filter)](void* stream) {
    return filter == nullptr || filter(static_cast<CUstream>(stream));
  });
}

void hotpack_torch_end_allocate_to_pool(int device, hotpack_torch::PoolId id) {
  hotpack_torch::Pools().End(device, id);
}

void hotpack_torch_release_pool(int device, hotpack_torch::PoolId id) { hotpack_torch::Pools().Release(device, id); }

size_t hotpack_torch_segments(int device, hotpack_torch_segment* segments, size_t capacity) {
  const std::vector<hotpack_torch_segment> all = hotpack_torch::Pools().Segments(device);
  for (size_t i = 0; i < std::min(capacity, all.size()); ++i) segments[i] = all[i];
  return all.size();
}

}  // extern "C"
#pragma GCC visibility pop
