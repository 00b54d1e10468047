// Access by other devices: queries, cuCtxEnablePeerAccess, and what copies and kernels may use.
#include "simgpu/driver/peer.h"

#include <algorithm>
#include <cinttypes>

#include "simgpu/checker/report.h"
#include "simgpu/driver/api.h"

namespace simgpu {
namespace {

Context* From(CUcontext handle) { return reinterpret_cast<Context*>(handle); }

bool Valid(const Driver& d, CUdevice device) { return device >= 0 && device < static_cast<int>(d.devices.size()); }

bool Alive(const Driver& d, Context* context) { return d.contexts.contains(context) && context->alive; }

uint64_t Bit(int device) { return uint64_t{1} << device; }

// `kernel`: cuMemAlloc's memory of another device needs the context's access, which copies do not.
bool Reaches(Driver& d, const Context* context, const Region& region, uint64_t address, bool kernel) {
  if (region.device < 0 || region.device == context->device) return true;
  if (region.kind == RegionKind::kMapped) {
    const Mapping* mapping = d.memory.FindMapping(address, nullptr);
    return (mapping->devices & Bit(context->device)) != 0;
  }
  if (region.kind != RegionKind::kAllocation) return true;
  const Allocation* allocation = d.memory.FindAllocation(address);
  if (allocation->pool != nullptr) return (allocation->pool->access & Bit(context->device)) != 0;
  return !kernel || allocation->graph || context->peers.contains(allocation->context);
}

}  // namespace

bool CanAccessPeer(const Driver& d, int device, int peer) { return d.peers && device != peer; }

bool CopyReaches(Driver& d, const Context* context, uint64_t address, uint64_t bytes) {
  if (!d.check_access) return true;
  const uint64_t end = address + bytes;
  while (address < end) {
    const Region region = d.memory.Find(address);
    if (!Reaches(d, context, region, address, false)) return false;
    if (region.kind != RegionKind::kMapped) return true;
    address = region.end;
  }
  return true;
}

void CheckKernelReaches(Driver& d, const Context* context, uint64_t address, const char* what) {
  if (!d.check_access || d.devices.size() < 2 || !d.checker.enabled() || context == nullptr) return;
  const Region region = d.memory.Find(address);
  if (Reaches(d, context, region, address, true)) return;
  Report("no-peer-access", "%s on device %d uses 0x%" PRIx64 " of device %d, to which it has no access", what,
         context->device, address, region.device);
}

CUresult CheckPeerEnd(Driver& d, CUcontext handle, uint64_t address) {
  if (!Alive(d, From(handle))) return CUDA_ERROR_INVALID_CONTEXT;
  if (!d.check_access) return CUDA_SUCCESS;
  const Region region = d.memory.Find(address);
  const bool device = region.kind == RegionKind::kAllocation || region.kind == RegionKind::kMapped;
  return device && region.device != From(handle)->device ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SIMGPU_API cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  SIMGPU_ENTER(cuDeviceCanAccessPeer);
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Valid(d, device) || !Valid(d, peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = CanAccessPeer(d, device, peer);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer) {
  SIMGPU_ENTER(cuDeviceGetP2PAttribute);
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Valid(d, device) || !Valid(d, peer) || device == peer) return CUDA_ERROR_INVALID_DEVICE;
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED && CanAccessPeer(d, device, peer);
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  SIMGPU_ENTER(cuCtxEnablePeerAccess);
  SIMGPU_CONTEXT(context);
  if (!Alive(d, From(peer)) || From(peer) == context) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  // Two contexts of one device are no peers either.
  if (!CanAccessPeer(d, context->device, From(peer)->device)) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  return context->peers.insert(From(peer)).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

SIMGPU_API cuCtxDisablePeerAccess(CUcontext peer) {
  SIMGPU_ENTER(cuCtxDisablePeerAccess);
  SIMGPU_CONTEXT(context);
  if (!Alive(d, From(peer))) return CUDA_ERROR_INVALID_CONTEXT;
  return context->peers.erase(From(peer)) != 0 ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

// The pool's own device always has access.
SIMGPU_API cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* map, size_t count) {
  SIMGPU_ENTER(cuMemPoolSetAccess);
  Pool* pool = reinterpret_cast<Pool*>(handle);
  if (!d.pools.contains(pool) || (map == nullptr && count > 0)) return CUDA_ERROR_INVALID_VALUE;
  uint64_t access = pool->access;
  for (size_t i = 0; i < count; ++i) {
    const CUmemLocation& location = map[i].location;
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (!Valid(d, location.id)) return CUDA_ERROR_INVALID_DEVICE;
    const bool own = location.id == pool->device, gives = map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    if (own && !gives) return CUDA_ERROR_INVALID_VALUE;
    if (!own && gives && !CanAccessPeer(d, location.id, pool->device)) return CUDA_ERROR_INVALID_DEVICE;
    access = gives ? access | Bit(location.id) : access & ~Bit(location.id);
  }
  pool->access = access;
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
  SIMGPU_ENTER(cuMemPoolGetAccess);
  const Pool* pool = reinterpret_cast<Pool*>(handle);
  if (!d.pools.contains(reinterpret_cast<Pool*>(handle)) || flags == nullptr || location == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || !Valid(d, location->id)) return CUDA_ERROR_INVALID_VALUE;
  const bool has = location->id == pool->device || (pool->access & Bit(location->id)) != 0;
  *flags = has ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

}  // namespace simgpu
