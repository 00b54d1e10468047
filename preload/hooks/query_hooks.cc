// Memory queries. The answers are those for a block of cuMemAlloc or cuMemAllocAsync, not for the arena that contains
// it. docs/hooks.md has the table of pointer attributes.
#include <algorithm>
#include <cstring>

#include "preload/hooks/hook_table.h"
#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"
#include "preload/serve/caller_exclusions.h"
#include "runtime/process/arena_table.h"

using hotpack::ContextArena;
using hotpack::DeviceAddress;
using hotpack::HookScope;

namespace {

// --- cuMemGetInfo ----------------------------------------------------------------------------------------------------

struct Memory {
  uint64_t idle = 0, live = 0;  // of all arenas of the current device; idle: what one request can have
};

Memory OfCurrentDevice() noexcept try {
  Memory memory;
  CUdevice device = 0;
  const hotpack::CudaDriver* driver = hotpack::Driver();
  if (driver == nullptr || driver->CtxGetDevice(&device) != CUDA_SUCCESS) return memory;
  hotpack::Arenas().ForEach([&](ContextArena* arena) {
    if (arena->memory->device() != device) return;
    const hotpack::EngineUsage usage = arena->engine->Usage();
    memory.idle += usage.returnable;
    memory.live += usage.live;
  });
  return memory;
} catch (...) {
  return {};
}

// --- pointer attributes ----------------------------------------------------------------------------------------------

struct Block {
  ContextArena* arena = nullptr;
  bool live = false;  // false: an address of the arena without a block
  bool of_pool = false;
  DeviceAddress base = 0;
  uint64_t bytes = 0;
  uint64_t number = 0;  // unique in the process
};

// Returns false if the address belongs to no arena.
bool Find(CUdeviceptr address, Block* block) noexcept try {
  block->arena = hotpack::Arenas().FindOwner(address);
  if (block->arena == nullptr) return false;
  uint64_t id = 0;
  block->live = block->arena->engine->FindBlock(address, &block->base, &block->bytes, &id);
  if (!block->live) return true;
  block->of_pool = block->arena->origins.OfPool(block->base);
  // The driver counts its own allocations from small numbers up. Requests that are not monitored have bit 63 set.
  constexpr uint64_t kOurs = uint64_t{1} << 62, kUnmonitored = uint64_t{1} << 47;
  const uint64_t arena = uint64_t{block->arena->number} << 48;
  block->number = kOurs | arena | (id >> 63 != 0 ? kUnmonitored : 0) | (id & (kUnmonitored - 1));
  return true;
} catch (...) {
  return false;
}

CUmemoryPool DefaultPool(const ContextArena* arena) {
  const hotpack::CudaDriver* driver = hotpack::Driver();
  CUmemoryPool pool = nullptr;
  if (driver == nullptr || driver->DeviceGetDefaultMemPool == nullptr) return nullptr;
  return driver->DeviceGetDefaultMemPool(&pool, arena->memory->device()) == CUDA_SUCCESS ? pool : nullptr;
}

template <typename T>
bool Put(void* data, T value) {
  memcpy(data, &value, sizeof(value));
  return true;
}

// Answers an attribute for which the driver would describe the arena, not the block. Returns false if the attribute is
// the same for both.
bool Answer(const Block& block, CUpointer_attribute attribute, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:  // memory of a pool belongs to none (Programming Guide, Pointer Attributes)
      return Put<CUcontext>(data, block.of_pool ? nullptr : block.arena->context);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return Put<unsigned long long>(data, block.number);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return Put<CUdeviceptr>(data, block.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return Put<size_t>(data, block.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return Put<int>(data, 1);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return Put<CUmemoryPool>(data, block.of_pool ? DefaultPool(block.arena) : nullptr);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:  // cuIpcGetMemHandle would fail. NCCL asks for the kind
      return Put<unsigned int>(data, !block.of_pool && hotpack::CalledByNccl() ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return Put<unsigned long long>(data, 0);
    default:
      return false;
  }
}

// Returns the bytes of an attribute's value; 0: unknown.
size_t SizeOf(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return 8;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return 4;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      return sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS);
    default:
      return 0;
  }
}

// Writes the answer of cuPointerGetAttributes for an address that is no pointer of the program: "default NULL values
// and CUDA_SUCCESS" (cuda.h).
void PutNothing(CUpointer_attribute attribute, void* data) {
  if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
    Put<int>(data, CU_DEVICE_INVALID);
  } else {
    memset(data, 0, SizeOf(attribute));
  }
}

bool AllKnown(unsigned int count, const CUpointer_attribute* attributes, void* const* data) {
  if (attributes == nullptr || data == nullptr) return false;
  return std::all_of(attributes, attributes + count, [](CUpointer_attribute a) { return SizeOf(a) != 0; }) &&
         std::all_of(data, data + count, [](void* place) { return place != nullptr; });
}

}  // namespace

// Free memory is the driver's plus the arenas' idle memory. The arenas are queried first: memory that moves from the
// driver to an arena meanwhile is missing from the sum, never counted twice.
CUresult Hook_cuMemGetInfo_v2(size_t* free, size_t* total) {
  HookScope scope;
  const Memory memory = scope.Active() ? OfCurrentDevice() : Memory();
  const CUresult result = HOTPACK_NEXT(cuMemGetInfo_v2)(free, total);
  if (result != CUDA_SUCCESS || memory.idle == 0 || free == nullptr || total == nullptr) return result;
  *free = std::min(*free + memory.idle, *total - std::min<uint64_t>(*total, memory.live));
  return result;
}

CUresult Hook_cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  HookScope scope;
  Block block;
  if (scope.Active() && data != nullptr && Find(address, &block)) {
    if (!block.live && attribute == CU_POINTER_ATTRIBUTE_MAPPED) {
      Put<int>(data, 0);
      return CUDA_SUCCESS;
    }
    if (!block.live) return CUDA_ERROR_INVALID_VALUE;  // released, or never allocated
    if (Answer(block, attribute, data)) return CUDA_SUCCESS;
  }
  return HOTPACK_NEXT(cuPointerGetAttribute)(data, attribute, address);
}

CUresult Hook_cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                     CUdeviceptr address) {
  HookScope scope;
  Block block;
  const bool ours = scope.Active() && AllKnown(count, attributes, data) && Find(address, &block);
  const CUresult result = HOTPACK_NEXT(cuPointerGetAttributes)(count, attributes, data, address);
  if (!ours || result != CUDA_SUCCESS) return result;
  for (unsigned int i = 0; i < count; ++i) {
    if (block.live) {
      Answer(block, attributes[i], data[i]);
    } else {
      PutNothing(attributes[i], data[i]);
    }
  }
  return result;
}

// Memory of cuMemAlloc and of a pool has no handle that the program mapped (cuda.h: the call fails).
CUresult Hook_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  HookScope scope;
  const bool ours = scope.Active() && hotpack::Arenas().FindOwner(reinterpret_cast<CUdeviceptr>(address)) != nullptr;
  if (ours) return CUDA_ERROR_INVALID_VALUE;
  return HOTPACK_NEXT(cuMemRetainAllocationHandle)(handle, address);
}
