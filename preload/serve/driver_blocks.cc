#include "preload/serve/driver_blocks.h"

#include <algorithm>
#include <new>

#include "preload/process/current_scope.h"
#include "preload/serve/arena_factory.h"
#include "preload/streams/stream_order.h"

namespace hotpack {
namespace {

bool IsDefault(CUstream stream) { return stream == nullptr || stream == CU_STREAM_LEGACY; }

bool Capturing(const CudaDriver& driver, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver.StreamIsCapturing != nullptr &&
         (driver.StreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE);
}

// Returns true if any stream may begin to capture at any moment: without hooks that moment is not visible.
bool MayBegin() { return !kHooksPresent && Order().AnyCapture(); }

}  // namespace

constinit DriverBlocks process_driver_blocks;

// The lock is held.
DriverBlocks::State& DriverBlocks::Get() {
  if (state_ == nullptr) state_ = new State;
  any_.store(true, std::memory_order_release);
  return *state_;
}

// --- requests --------------------------------------------------------------------------------------------------------

CUresult DriverBlocks::Allocate(const CudaDriver& driver, CUdeviceptr* address, size_t bytes, CUstream stream) {
  const CUcontext context = CurrentContext(driver);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  GiveBackWaiting(driver);
  GiveBackEnded(driver);
  Block block = {context, bytes, false, {}};
  CUresult result = Ask(driver, address, stream, &block);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && Any()) {
    Trim(driver);
    result = Ask(driver, address, stream, &block);
  }
  if (result != CUDA_SUCCESS) return result;
  std::lock_guard<std::mutex> lock(mutex_);
  Get().blocks[*address] = std::move(block);
  return result;
}

CUresult DriverBlocks::Ask(const CudaDriver& driver, CUdeviceptr* address, CUstream stream, Block* block) {
  block->plain = Capturing(driver, stream);
  if (CopiesNeedPlainMemory(driver)) block->plain = true;
  if (!block->plain) {
    if (TakeIdle(address, stream, block)) return CUDA_SUCCESS;
    const CUmemoryPool pool = PoolOf(driver, block->context, stream);
    if (pool != nullptr) return driver.MemAllocFromPoolAsync(address, block->bytes, pool, stream);
    block->plain = true;  // the device has no pools
  }
  const RelaxedCaptureMode relaxed(driver);
  return driver.MemAlloc != nullptr ? driver.MemAlloc(address, block->bytes) : CUDA_ERROR_NOT_SUPPORTED;
}

// Takes the stream's smallest idle block, at most a quarter larger than the request: blocks are not divided.
bool DriverBlocks::TakeIdle(CUdeviceptr* address, CUstream stream, Block* block) {
  if (idle_bytes_.load() == 0) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  Pool* pool = FindPool(block->context, stream);
  if (pool == nullptr) return false;
  const auto found = pool->idle.lower_bound(block->bytes);
  if (found == pool->idle.end() || found->first > block->bytes + block->bytes / 4 + 512) return false;
  block->bytes = found->first;
  *address = found->second;
  pool->idle.erase(found);
  idle_bytes_.fetch_sub(block->bytes);
  return true;
}

// Returns false if the stream has no pool.
bool DriverBlocks::KeepIdle(CUdeviceptr address, CUstream stream, const Block& block) {
  std::lock_guard<std::mutex> lock(mutex_);
  Pool* pool = FindPool(block.context, stream);
  if (pool == nullptr) return false;
  pool->idle.emplace(block.bytes, address);
  idle_bytes_.fetch_add(block.bytes);
  return true;
}

// The lock is held. Returns null if there is none.
DriverBlocks::Pool* DriverBlocks::FindPool(CUcontext context, CUstream stream) {
  if (stream == CU_STREAM_LEGACY) stream = nullptr;
  for (Pool& pool : Get().pools) {
    if (pool.context == context && pool.stream == stream) return &pool;
  }
  return nullptr;
}

// Returns the stream's own pool; null if the device has no pools.
CUmemoryPool DriverBlocks::PoolOf(const CudaDriver& driver, CUcontext context, CUstream stream) {
  if (driver.MemPoolCreate == nullptr || driver.MemAllocFromPoolAsync == nullptr || driver.MemFreeAsync == nullptr ||
      driver.MemPoolSetAttribute == nullptr) {
    return nullptr;
  }
  if (stream == CU_STREAM_LEGACY) stream = nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  if (const Pool* pool = FindPool(context, stream)) return pool->pool;
  std::vector<Pool>& pools = Get().pools;
  CUdevice device = 0;
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  if (driver.CtxGetDevice(&device) != CUDA_SUCCESS) return nullptr;
  properties.location.id = device;
  CUmemoryPool pool = nullptr;
  pools.reserve(pools.size() + 1);
  if (driver.MemPoolCreate(&pool, &properties) != CUDA_SUCCESS) return nullptr;
  // The driver frees memory once it believes that the stream is done with it. Other streams may still use that memory.
  cuuint64_t keep = UINT64_MAX;
  driver.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
  pools.push_back({context, stream, pool, {}});
  return pool;
}

// --- releases --------------------------------------------------------------------------------------------------------

CUresult DriverBlocks::Free(const CudaDriver& driver, CUdeviceptr address, CUstream stream, ReleaseKind kind) {
  Block block = {};
  bool known = false;
  if (Any()) {
    GiveBackWaiting(driver);
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = Get().blocks.find(address);
    known = found != Get().blocks.end();
    if (known) {
      block = std::move(found->second);
      Get().blocks.erase(found);
    }
  }
  if (!known) {
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    if (driver.MemFreeAsync != nullptr) result = driver.MemFreeAsync(address, stream);
    if (result == CUDA_ERROR_NOT_SUPPORTED && driver.MemFree != nullptr) result = driver.MemFree(address);
    return result;
  }
  CUresult result = CUDA_SUCCESS;
  if (GiveBack(driver, address, stream, kind, block, &result)) return result;
  std::lock_guard<std::mutex> lock(mutex_);
  Get().waiting.push_back({address, stream, kind, std::move(block)});
  waiting_count_.store(Get().waiting.size());
  return CUDA_SUCCESS;
}

// Returns false if a capture forbids it.
bool DriverBlocks::GiveBack(const CudaDriver& driver, CUdeviceptr address, CUstream stream, ReleaseKind kind,
                            const Block& block, CUresult* result) {
  // Another thread may be about to begin a capture on a stream that is queried here and then gets an event.
  const std::lock_guard<std::mutex> no_capture_begins(giving_back_);
  if (block.plain) {  // cuMemFree waits for all work that may use the memory
    if (Order().AnyCapture() || Capturing(driver, stream)) return false;
    const RelaxedCaptureMode relaxed(driver);
    const CurrentScope scope(driver, block.context);
    *result = scope ? driver.MemFree(address) : CUDA_ERROR_INVALID_CONTEXT;
    return true;
  }
  // The caller's default stream is its current context's. A thread without one means the block's.
  const CUcontext current = CurrentContext(driver);
  const CurrentScope scope(driver, current != nullptr ? current : block.context);
  if (!scope) {
    *result = CUDA_ERROR_INVALID_CONTEXT;
    return true;
  }
  if (Capturing(driver, stream)) return false;
  if (!block.users.empty() && (MayBegin() || !WaitForUsers(driver, block, stream))) return false;
  if (kind == ReleaseKind::kPooled && KeepIdle(address, stream, block)) return true;
  if (MayBegin()) return false;
  *result = driver.MemFreeAsync(address, stream);
  return true;
}

bool DriverBlocks::WaitForUsers(const CudaDriver& driver, const Block& block, CUstream stream) {
  for (const CUstream user : block.users) {
    if (user == stream && !IsDefault(user)) continue;
    // A default stream may be any context's: the caller names a block, and its device need not be the stream's.
    const std::vector<CUcontext> contexts = IsDefault(user) ? Contexts() : std::vector<CUcontext>{block.context};
    for (const CUcontext context : contexts) {
      if (IsDefault(user) && IsDefault(stream) && context == block.context) continue;
      if (!WaitFor(driver, context, user, stream)) return false;
    }
  }
  return true;
}

// Makes `stream` of the current context wait for the work submitted to `user`.
bool DriverBlocks::WaitFor(const CudaDriver& driver, CUcontext context, CUstream user, CUstream stream) {
  CUevent event = nullptr;
  {
    CUcontext own = nullptr;
    if (!IsDefault(user) && driver.StreamGetCtx != nullptr && driver.StreamGetCtx(user, &own) == CUDA_SUCCESS)
      context = own;
    CurrentScope scope(driver, context);
    if (!scope || Capturing(driver, user) || driver.EventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
      return false;
    if (driver.EventRecord(event, user) != CUDA_SUCCESS) {
      driver.EventDestroy(event);
      return false;
    }
  }
  const bool done = driver.StreamWaitEvent(stream, event, 0) == CUDA_SUCCESS;
  driver.EventDestroy(event);  // pending waits stay valid
  return done;
}

std::vector<CUcontext> DriverBlocks::Contexts() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<CUcontext> contexts;
  for (const Pool& pool : Get().pools) {
    if (std::find(contexts.begin(), contexts.end(), pool.context) == contexts.end()) contexts.push_back(pool.context);
  }
  return contexts;
}

bool DriverBlocks::RecordUse(CUdeviceptr address, CUstream stream) {
  if (!Any()) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = Get().blocks.find(address);
  if (found == Get().blocks.end()) return false;
  std::vector<CUstream>& users = found->second.users;
  if (std::find(users.begin(), users.end(), stream) == users.end()) users.push_back(stream);
  return true;
}

// Gives back the blocks that waited for the end of a capture.
void DriverBlocks::GiveBackWaiting(const CudaDriver& driver) {
  if (waiting_count_.load() == 0) return;
  std::vector<Waiting> waiting;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    waiting.swap(Get().waiting);
    waiting_count_.store(0);
  }
  std::vector<Waiting> still;
  for (Waiting& each : waiting) {
    CurrentScope scope(driver, each.block.context);
    CUresult result = CUDA_SUCCESS;
    const bool given = scope && GiveBack(driver, each.address, each.stream, each.kind, each.block, &result);
    if (!given) still.push_back(std::move(each));
  }
  if (still.empty()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  std::move(still.begin(), still.end(), std::back_inserter(Get().waiting));
  waiting_count_.store(Get().waiting.size());
}

// Blocks released from here on stay idle: work that the host does not wait for may use them.
bool DriverBlocks::Trim(const CudaDriver& driver) {
  if (!Any() || driver.MemPoolTrimTo == nullptr) return false;
  std::vector<Pool> pools;
  std::lock_guard<std::mutex> trimming(trimming_);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    pools = Get().pools;
    for (Pool& pool : Get().pools) {
      for (const auto& [bytes, address] : pool.idle) idle_bytes_.fetch_sub(bytes);
      pool.idle.clear();
    }
  }
  bool any = GiveBackEnded(driver);
  if (pools.empty()) return any;
  bool done = Order().Synchronize(nullptr);
  for (const Pool& pool : pools) {
    CurrentScope scope(driver, pool.context);
    done = done && scope && driver.CtxSynchronize() == CUDA_SUCCESS;
  }
  for (const Pool& pool : pools) {
    for (const auto& [bytes, address] : pool.idle) {
      if (!done) {
        KeepIdle(address, pool.stream, {pool.context, bytes, false, {}});
        continue;
      }
      any = GiveBackIdle(driver, pool, bytes, address) || any;
    }
  }
  for (const Pool& pool : pools) {
    if (!done) break;
    CurrentScope scope(driver, pool.context);
    if (scope && driver.CtxSynchronize() == CUDA_SUCCESS) driver.MemPoolTrimTo(pool.pool, 0);
  }
  return any;
}

// The host has waited for all work that may use the block. Its stream may have ended. Returns false if the block stays
// idle.
bool DriverBlocks::GiveBackIdle(const CudaDriver& driver, const Pool& pool, size_t bytes, CUdeviceptr address) {
  const std::lock_guard<std::mutex> meanwhile_no_capture_begins(giving_back_);
  CurrentScope scope(driver, pool.context);
  // While a blocking stream captures, a call on the legacy stream would invalidate the capture.
  const bool may = scope && !Order().AnyCapture() && !Capturing(driver, nullptr);
  if (may && driver.MemFreeAsync(address, nullptr) == CUDA_SUCCESS) return true;
  KeepIdle(address, pool.stream, {pool.context, bytes, false, {}});
  return false;
}

// The context's work has ended with it. Other contexts' work may still use an idle block.
void DriverBlocks::ForgetContext(const CudaDriver& driver, CUcontext context) {
  if (!Any()) return;
  std::vector<CUmemoryPool> pools;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    State& state = Get();
    std::erase_if(state.blocks, [context](const auto& block) { return block.second.context == context; });
    for (const Pool& pool : state.pools) {
      if (pool.context != context) continue;
      pools.push_back(pool.pool);
      for (const auto& [bytes, address] : pool.idle) state.ended.emplace_back(address, bytes);
    }
    std::erase_if(state.pools, [context](const Pool& pool) { return pool.context == context; });
    std::erase_if(state.waiting, [context](const Waiting& waiting) { return waiting.block.context == context; });
    waiting_count_.store(state.waiting.size());
    ended_count_.store(state.ended.size());
  }
  GiveBackEnded(driver);
  for (const CUmemoryPool pool : pools) {
    if (driver.MemPoolDestroy != nullptr) driver.MemPoolDestroy(pool);
  }
}

// Gives back the idle blocks of pools that have ended. Waits for all work. Does nothing in a thread without a context,
// or during a capture. Returns whether there was any.
bool DriverBlocks::GiveBackEnded(const CudaDriver& driver) {
  if (ended_count_.load() == 0 || driver.MemFree == nullptr || CurrentContext(driver) == nullptr) return false;
  std::vector<std::pair<CUdeviceptr, size_t>> ended;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ended.swap(Get().ended);
    ended_count_.store(0);
  }
  const bool done = Order().Synchronize(nullptr);
  const RelaxedCaptureMode relaxed(driver);
  const auto kept = std::remove_if(ended.begin(), ended.end(), [&](const auto& block) {
    const bool given = done && driver.MemFree(block.first) == CUDA_SUCCESS;
    if (given) idle_bytes_.fetch_sub(block.second);
    return given;
  });
  const bool any = kept != ended.end();
  std::lock_guard<std::mutex> lock(mutex_);
  Get().ended.insert(Get().ended.end(), ended.begin(), kept);
  ended_count_.store(Get().ended.size());
  return any;
}

void DriverBlocks::ResetAfterFork() {
  new (&trimming_) std::mutex;  // another thread of the parent may have held it
  new (&giving_back_) std::mutex;
  new (&mutex_) std::mutex;
  state_ = nullptr;
  any_.store(false);
  waiting_count_.store(0);
  ended_count_.store(0);
  idle_bytes_.store(0);
}

}  // namespace hotpack
