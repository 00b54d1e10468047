// A caching allocator that keeps exactly PyTorch's contract. Memory of one stream's pool is never given to another
// stream. Within the pool it is reused at once, without any order. Streams of record_stream come before the next use.
//
// The last rule is weaker than PyTorch. PyTorch queries on the host whether the named streams have come so far, and so
// orders more than the contract says. Here the pool's stream waits for them when it gets the memory.
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "simgpu/checker.h"
#include "tests/property/pool_contract_allocator.h"

namespace property {
namespace {

constexpr size_t kUnit = 512, kSegment = size_t{2} << 20;

class Model : public Allocator {
 public:
  void* Malloc(size_t bytes, int device, CUstream stream) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const size_t rounded = (bytes + kUnit - 1) / kUnit * kUnit;
    PoolId id{0, 0};
    for (const Open& open : open_) {
      if (open.device == device && open.stream == stream) id = open.id;
    }
    const Key key{device, stream, id};
    Pool& pool = pools_[key];
    auto found = Find(&pool, rounded, IsCapturing(stream));
    if (found == pool.end() && (found = Grow(&pool, rounded)) == pool.end()) return nullptr;
    Piece& piece = found->second;
    for (const CUevent event : piece.after) {
      cuStreamWaitEvent(stream, event, 0);
      cuEventDestroy(event);
    }
    piece.after.clear();
    if (piece.bytes > rounded) {
      pool[found->first + rounded] = {piece.bytes - rounded, true, {}};
      piece.bytes = rounded;
    }
    piece.free = false;
    live_[found->first] = {key, {}, found->first};
    simgpuBlockGiven(found->first, bytes, stream);
    return reinterpret_cast<void*>(found->first);
  }

  void Free(void* pointer, size_t, int, CUstream stream) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto address = reinterpret_cast<uint64_t>(pointer);
    const auto block = live_.find(address);
    if (block == live_.end()) return;
    simgpuBlockReturned(address, stream);
    Pool& pool = pools_[block->second.key];
    auto at = pool.find(address);
    at->second.free = true;
    if (!block->second.told.empty()) {
      if (!open_.empty()) {  // a capture may be going on, so the events come when it is over
        late_.push_back(block->second);
        at->second.free = false;
        live_.erase(block);
        return;
      }
      for (const auto& [context, told] : block->second.told) at->second.after.push_back(EventOn(context, told));
    }
    live_.erase(block);
    if (auto next = std::next(at); next != pool.end() && Joins(*at, *next)) {
      at->second.bytes += next->second.bytes;
      pool.erase(next);
    }
    if (at != pool.begin() && Joins(*std::prev(at), *at)) {
      std::prev(at)->second.bytes += at->second.bytes;
      pool.erase(at);
    }
  }

  void RecordStream(void* pointer, int device, CUstream stream) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto block = live_.find(reinterpret_cast<uint64_t>(pointer));
    CUcontext context = nullptr;
    if (block == live_.end() || cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) return;
    block->second.told.insert({context, stream});
  }

  void EmptyCache() override {}
  void BeginPool(int device, PoolId id, CUstream stream) override {
    std::lock_guard<std::mutex> lock(mutex_);
    open_.push_back({device, id, stream});
  }
  void EndPool(int device, PoolId id) override {
    std::lock_guard<std::mutex> lock(mutex_);
    open_.remove_if([&](const Open& open) { return open.device == device && open.id == id; });
    if (!open_.empty()) return;
    for (const Block& block : std::exchange(late_, {})) {
      Piece& piece = pools_[block.key].at(block.address);
      piece.free = true;
      for (const auto& [context, told] : block.told) piece.after.push_back(EventOn(context, told));
    }
  }
  void ReleasePool(int, PoolId) override {}
  bool PoolsUntold() const override { return false; }

 private:
  struct Piece {
    size_t bytes;
    bool free;
    std::vector<CUevent> after;  // to be waited for by the next owner
  };
  using Pool = std::map<uint64_t, Piece>;
  using Key = std::tuple<int, CUstream, PoolId>;
  struct Block {
    Key key;
    std::set<std::pair<CUcontext, CUstream>> told;
    uint64_t address = 0;
  };
  struct Open {
    int device;
    PoolId id;
    CUstream stream;
  };

  static bool IsCapturing(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
  }
  static bool Joins(const Pool::value_type& a, const Pool::value_type& b) {
    return a.second.free && b.second.free && a.second.after.empty() && b.second.after.empty() &&
           a.first + a.second.bytes == b.first;
  }
  static CUevent EventOn(CUcontext context, CUstream stream) {
    CUevent event = nullptr;
    CUcontext popped = nullptr;
    cuCtxPushCurrent(context);
    cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    cuEventRecord(event, stream);
    cuCtxPopCurrent(&popped);
    return event;
  }
  // `still`: no event may be waited for.
  static Pool::iterator Find(Pool* pool, size_t bytes, bool still) {
    auto best = pool->end();
    for (auto it = pool->begin(); it != pool->end(); ++it) {
      if (!it->second.free || it->second.bytes < bytes || (still && !it->second.after.empty())) continue;
      if (best == pool->end() || it->second.bytes < best->second.bytes) best = it;
    }
    return best;
  }
  static Pool::iterator Grow(Pool* pool, size_t bytes) {
    CUdeviceptr address = 0;
    const size_t size = (bytes + kSegment - 1) / kSegment * kSegment;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    cuThreadExchangeStreamCaptureMode(&mode);
    const CUresult result = cuMemAlloc(&address, size);
    cuThreadExchangeStreamCaptureMode(&mode);
    return result != CUDA_SUCCESS ? pool->end() : pool->emplace(address, Piece{size, true, {}}).first;
  }

  std::mutex mutex_;
  std::map<Key, Pool> pools_;
  std::unordered_map<uint64_t, Block> live_;
  std::list<Open> open_;
  std::vector<Block> late_;  // released while a pool was open
};

}  // namespace

std::unique_ptr<Allocator> MakeModel() { return std::make_unique<Model>(); }

}  // namespace property
