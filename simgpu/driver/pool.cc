// Stream-ordered allocation: cuMemAllocAsync, cuMemFreeAsync and memory pools.
//
// A freed block stays in its pool. Its stream gets it again at once. Another stream gets it as the pool's attributes
// allow:
//  - if it comes after the release anyway (CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES);
//  - if the host knows that the release is done (…_ALLOW_OPPORTUNISTIC; a real driver detects it by itself);
//  - else by waiting for the releasing stream (…_ALLOW_INTERNAL_DEPENDENCIES), which is then an order of the program.
// So the pool itself never breaks the order.
#include <algorithm>

#include "simgpu/driver/api.h"
#include "simgpu/driver/work.h"

namespace simgpu {
namespace {

Pool* From(CUmemoryPool handle) { return reinterpret_cast<Pool*>(handle); }

void AddUsed(Pool* pool, uint64_t bytes) {
  pool->used += bytes;
  pool->used_high = std::max(pool->used_high, pool->used);
}

void AddReserved(Pool* pool, uint64_t bytes) {
  pool->reserved += bytes;
  pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
}

// Returns true if the stream may have the block without a wait.
bool MayReuse(const Driver& d, const Pool& pool, const Pool::Cached& cached, const Stream& stream) {
  if (cached.stream == stream.order || cached.stream < 0) return true;
  if (pool.reuse[CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC] != 0 && d.order.Finished(cached.moment)) return true;
  if (pool.reuse[CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] == 0) return false;
  const Clock& now = d.order.At(stream.order);
  for (size_t i = 0; i < cached.moment.size(); ++i) {
    if (cached.moment[i] > (i < now.size() ? now[i] : 0)) return false;
  }
  return true;
}

// Returns a cached block of fitting size, preferably one that needs no wait; null if there is none.
Allocation* TakeCached(Driver& d, Pool* pool, Stream* stream, uint64_t bytes) {
  const uint64_t least = MemoryMap::Rounded(bytes);
  auto first = pool->cached.lower_bound(least);
  auto last = pool->cached.upper_bound(least + least / 8);
  auto best = std::find_if(first, last, [&](const auto& entry) { return MayReuse(d, *pool, entry.second, *stream); });
  if (best == last) {
    if (first == last || pool->reuse[CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES] == 0) return nullptr;
    best = first;
    d.order.Wait(stream->order, best->second.moment);
  }
  Allocation* allocation = d.memory.FindAllocationStart(best->second.base);
  pool->cached.erase(best);
  allocation->cached = allocation->arena = false;
  allocation->bytes = bytes;
  return allocation;
}

// Returns new memory for the pool; null if the device is out of memory, or the pool would exceed its maximum.
Allocation* Grow(Driver& d, Pool* pool, Stream* stream, uint64_t bytes) {
  const uint64_t most = pool->max_bytes, least = MemoryMap::Rounded(bytes);
  if (most != 0 && least > most) return nullptr;
  if (most != 0 && pool->reserved + least > most) TrimPool(d, pool, most - least);
  if (most != 0 && pool->reserved + least > most) return nullptr;
  Allocation* allocation = AllocateIn(d, pool->device, stream->context, bytes);
  if (allocation != nullptr) AddReserved(pool, allocation->reserved);
  return allocation;
}

CUresult AllocateFrom(Driver& d, Pool* pool, CUdeviceptr* result, uint64_t bytes, Stream* stream) {
  if (result == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Allocation* allocation = nullptr;
  if (stream->capture != nullptr) {
    allocation = AllocateIn(d, pool->device, stream->context, bytes);
    if (allocation == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    allocation->graph = true;
    stream->capture->graph->memory->bases.insert(allocation->base);
    AddNode(stream->capture->graph.get(), CU_GRAPH_NODE_TYPE_MEM_ALLOC, nullptr);
  } else {
    d.order.Submit(stream->order);
    allocation = TakeCached(d, pool, stream, bytes);
    if (allocation == nullptr) allocation = Grow(d, pool, stream, bytes);
    if (allocation == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    allocation->pool = pool;
    AddUsed(pool, allocation->reserved);
  }
  d.checker.Given(allocation->base, bytes, Teller::kDriver);
  *result = allocation->base;
  return CUDA_SUCCESS;
}

CUresult AllocAsync(CUdeviceptr* result, size_t bytes, CUstream handle, DefaultStream variant) {
  SIMGPU_ENTER(cuMemAllocAsync);
  SIMGPU_WORK_STREAM(stream, handle, variant);
  return AllocateFrom(d, d.devices[stream->context->device].pool, result, bytes, stream);
}

CUresult AllocFromPoolAsync(CUdeviceptr* result, size_t bytes, CUmemoryPool pool, CUstream handle,
                            DefaultStream variant) {
  SIMGPU_ENTER(cuMemAllocFromPoolAsync);
  SIMGPU_WORK_STREAM(stream, handle, variant);
  if (!d.pools.contains(From(pool))) return CUDA_ERROR_INVALID_VALUE;
  return AllocateFrom(d, From(pool), result, bytes, stream);
}

CUresult FreeAsync(CUdeviceptr address, CUstream handle, DefaultStream variant) {
  SIMGPU_ENTER(cuMemFreeAsync);
  SIMGPU_WORK_STREAM(stream, handle, variant);
  if (address == 0) return CUDA_SUCCESS;
  Allocation* allocation = d.memory.FindAllocationStart(address);
  if (allocation == nullptr || allocation->kind != AllocationKind::kDevice || allocation->cached) {
    d.checker.UnknownFree(address);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (allocation->graph) {  // ends with the graph; the application's block ends here
    if (stream->capture != nullptr) AddNode(stream->capture->graph.get(), CU_GRAPH_NODE_TYPE_MEM_FREE, nullptr);
    d.checker.Returned(address, Teller::kDriver);
    return CUDA_SUCCESS;
  }
  if (stream->capture != nullptr) {
    stream->capture->valid = false;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (allocation->pool == nullptr) {  // memory of cuMemAlloc: its pages become the default pool's
    allocation->pool = &d.devices[allocation->device].default_pool;
    AddReserved(allocation->pool, allocation->reserved);
    AddUsed(allocation->pool, allocation->reserved);
  }
  d.order.Submit(stream->order);
  return FreeToPool(d, allocation, stream);
}

}  // namespace

CUresult FreeToPool(Driver& d, Allocation* allocation, Stream* stream) {
  if (allocation->cached) {
    d.checker.UnknownFree(allocation->base);
    return CUDA_ERROR_INVALID_VALUE;
  }
  d.checker.Returned(allocation->base, Teller::kDriver);
  Pool* pool = allocation->pool;
  allocation->cached = allocation->arena = true;
  allocation->bytes = allocation->reserved;
  pool->used -= allocation->reserved;
  pool->cached.emplace(allocation->reserved,
                       stream == nullptr ? Pool::Cached{allocation->base, -1, {}}
                                         : Pool::Cached{allocation->base, stream->order, d.order.At(stream->order)});
  return CUDA_SUCCESS;
}

void EmptyPools(Driver& d, int device) {
  for (const auto* pools : {&d.pools, &d.ended_pools}) {
    for (Pool* pool : *pools) {
      if (pool->device != device) continue;
      for (const auto& [bytes, cached] : pool->cached) d.order.HostSaw(cached.moment);
      TrimPool(d, pool, 0);
    }
  }
}

void TrimPool(Driver& d, Pool* pool, uint64_t keep) {
  for (auto it = pool->cached.begin(); it != pool->cached.end() && pool->reserved > keep;) {
    Allocation* allocation = d.memory.FindAllocationStart(it->second.base);
    if (!d.order.Finished(it->second.moment)) {
      ++it;
      continue;
    }
    pool->reserved -= allocation->reserved;
    d.memory.Free(allocation, &d.devices[pool->device].physical);
    it = pool->cached.erase(it);
  }
}

void TrimPools(Driver& d) {
  for (Pool* pool : d.pools) TrimPool(d, pool, pool->release_threshold);
  for (auto it = d.ended_pools.begin(); it != d.ended_pools.end();) {
    Pool* pool = *it;
    TrimPool(d, pool, 0);
    if (pool->reserved > 0) {
      ++it;
      continue;
    }
    it = d.ended_pools.erase(it);
    delete pool;
  }
}

SIMGPU_API cuMemAllocAsync(CUdeviceptr* result, size_t bytes, CUstream stream) {
  return AllocAsync(result, bytes, stream, DefaultStream::kLegacy);
}
SIMGPU_API cuMemAllocAsync_ptsz(CUdeviceptr* result, size_t bytes, CUstream stream) {
  return AllocAsync(result, bytes, stream, DefaultStream::kPerThread);
}
SIMGPU_API cuMemAllocFromPoolAsync(CUdeviceptr* result, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return AllocFromPoolAsync(result, bytes, pool, stream, DefaultStream::kLegacy);
}
SIMGPU_API cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* result, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return AllocFromPoolAsync(result, bytes, pool, stream, DefaultStream::kPerThread);
}
SIMGPU_API cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return FreeAsync(address, stream, DefaultStream::kLegacy);
}
SIMGPU_API cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  return FreeAsync(address, stream, DefaultStream::kPerThread);
}

}  // namespace simgpu
