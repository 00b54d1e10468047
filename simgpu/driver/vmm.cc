// Virtual memory management: reservations, physical handles, mappings. A mapping is an entry in a table: the host's
// page tables never change, so thousands of 2 MiB mappings cost nothing there.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "simgpu/checker/virtual_time.h"
#include "simgpu/driver/api.h"
#include "simgpu/driver/peer.h"

namespace simgpu {
namespace {

Handle* From(CUmemGenericAllocationHandle handle) { return reinterpret_cast<Handle*>(handle); }

Handle* Find(Driver& d, CUmemGenericAllocationHandle handle) {
  auto it = d.handles.find(From(handle));
  return it == d.handles.end() ? nullptr : it->second.get();
}

// Releases physical memory once neither a handle nor a mapping names it.
void DropIfUnused(Driver& d, Handle* handle) {
  if (handle->references > 0 || handle->mappings > 0) return;
  if (!handle->imported) d.devices[handle->device].physical.Give(handle->bytes);
  d.handles.erase(handle);
}

const std::string kSharedMemory = "simgpu-memory-";  // and the device's ordinal

// Returns the device whose memory the descriptor is, -1 if it is none's.
int DeviceOfShared(int descriptor) {
  char path[64] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  if (readlink(link.c_str(), path, sizeof(path) - 1) <= 0) return -1;
  const std::string begin = "/memfd:" + kSharedMemory;
  return std::string(path).compare(0, begin.size(), begin) == 0 ? atoi(path + begin.size()) : -1;
}

bool ValidProps(const Driver& d, const CUmemAllocationProp* prop) {
  return prop != nullptr && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && prop->location.id >= 0 &&
         prop->location.id < static_cast<int>(d.devices.size());
}

// Calls visit(base, mapping) for the mappings that exactly cover [address, address + bytes). Returns false if none do.
template <typename Visit>
bool ForEachMapping(Driver& d, uint64_t address, uint64_t bytes, Visit visit) {
  auto& all = d.memory.mappings();
  for (uint64_t at = address; at < address + bytes;) {
    auto it = all.find(at);
    if (it == all.end() || at + it->second.bytes > address + bytes) return false;
    at += it->second.bytes;
  }
  for (auto it = all.find(address); it != all.end() && it->first < address + bytes;) {
    auto next = std::next(it);
    visit(it->first, &it->second);
    it = next;
  }
  return true;
}

}  // namespace

SIMGPU_API cuMemAddressReserve(CUdeviceptr* result, size_t bytes, size_t alignment, CUdeviceptr wanted,
                               unsigned long long flags) {
  SIMGPU_ENTER(cuMemAddressReserve);
  SIMGPU_STRICT_CONTEXT();
  if (result == nullptr || bytes == 0 || bytes % kPage != 0 || flags != 0 || (alignment & (alignment - 1)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t base = ReserveAddresses(bytes, alignment, wanted);
  if (base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  d.memory.reservations()[base] = {bytes};
  *result = base;
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  SIMGPU_ENTER(cuMemAddressFree);
  SIMGPU_STRICT_CONTEXT();
  auto& all = d.memory.reservations();
  auto it = all.find(address);
  if (it == all.end() || it->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  auto mapping = d.memory.mappings().lower_bound(address);
  if (mapping != d.memory.mappings().end() && mapping->first < address + bytes) return CUDA_ERROR_INVALID_VALUE;
  d.checker.TakenAway(address, address + bytes, "cuMemAddressFree");
  all.erase(it);
  d.memory.Changed();
  ReleaseAddresses(address, bytes);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemCreate(CUmemGenericAllocationHandle* result, size_t bytes, const CUmemAllocationProp* prop,
                       unsigned long long flags) {
  SIMGPU_ENTER(cuMemCreate);
  SIMGPU_STRICT_CONTEXT();
  if (result == nullptr || bytes == 0 || bytes % kPage != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!ValidProps(d, prop)) return CUDA_ERROR_INVALID_VALUE;
  if ((prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  Device& device = d.devices[prop->location.id];
  if (!device.physical.Take(bytes)) {
    EmptyPools(d, device.ordinal);
    if (!device.physical.Take(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  HostTakesBytes(bytes);
  auto handle = std::make_unique<Handle>(bytes);
  handle->device = device.ordinal;
  handle->handle_types = static_cast<unsigned>(prop->requestedHandleTypes);
  *result = reinterpret_cast<CUmemGenericAllocationHandle>(handle.get());
  d.handles.emplace(handle.get(), std::move(handle));
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemRelease(CUmemGenericAllocationHandle handle) {
  SIMGPU_ENTER(cuMemRelease);
  SIMGPU_STRICT_CONTEXT();
  Handle* h = Find(d, handle);
  if (h == nullptr || h->references == 0) return CUDA_ERROR_INVALID_VALUE;
  --h->references;
  DropIfUnused(d, h);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                    unsigned long long flags) {
  SIMGPU_ENTER(cuMemMap);
  SIMGPU_STRICT_CONTEXT();
  Handle* h = Find(d, handle);
  uint64_t base = 0;
  Reservation* reservation = d.memory.FindReservation(address, &base);
  if (h == nullptr || h->references == 0 || reservation == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  // cuda.h: the offset "currently must be zero"; address and size are multiples of the granularity.
  if (offset != 0 || bytes == 0 || bytes > h->bytes || (address | bytes) % kPage != 0) return CUDA_ERROR_INVALID_VALUE;
  if (address + bytes > base + reservation->bytes) return CUDA_ERROR_INVALID_VALUE;
  auto& all = d.memory.mappings();
  auto next = all.upper_bound(address);
  if (next != all.end() && next->first < address + bytes) return CUDA_ERROR_INVALID_VALUE;
  if (next != all.begin() && std::prev(next)->first + std::prev(next)->second.bytes > address) {
    return CUDA_ERROR_INVALID_VALUE;  // mapped already
  }
  HostTakesBytes(bytes);
  Mapping mapping;
  mapping.bytes = bytes;
  mapping.handle = h;
  mapping.reservation = reservation;
  all.emplace_hint(next, address, std::move(mapping));
  ++h->mappings;
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemUnmap(CUdeviceptr address, size_t bytes) {
  SIMGPU_ENTER(cuMemUnmap);
  SIMGPU_STRICT_CONTEXT();
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!ForEachMapping(d, address, bytes, [](uint64_t, Mapping*) {})) return CUDA_ERROR_INVALID_VALUE;
  HostTakesBytes(bytes);
  d.checker.TakenAway(address, address + bytes, "cuMemUnmap");
  if (!d.written.empty()) d.written.Remove(address, bytes);  // the host may have these addresses from now on
  ForEachMapping(d, address, bytes, [&d](uint64_t base, Mapping* mapping) {
    Handle* handle = mapping->handle;
    d.memory.mappings().erase(base);
    --handle->mappings;
    DropIfUnused(d, handle);
  });
  d.memory.Changed();
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* desc, size_t count) {
  SIMGPU_ENTER(cuMemSetAccess);
  SIMGPU_STRICT_CONTEXT();
  if (desc == nullptr || count == 0 || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  unsigned access = 0;
  uint64_t given = 0, taken = 0;  // devices
  for (size_t i = 0; i < count; ++i) {
    const CUmemLocation& location = desc[i].location;
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE || location.id < 0 ||
        location.id >= static_cast<int>(d.devices.size())) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const Mapping* first = d.memory.FindMapping(address, nullptr);
    const bool own = first == nullptr || first->handle->device == location.id;
    if (!own && desc[i].flags != 0 && !CanAccessPeer(d, location.id, first->handle->device)) {
      return CUDA_ERROR_INVALID_DEVICE;
    }
    access |= desc[i].flags;
    (desc[i].flags != 0 ? given : taken) |= uint64_t{1} << location.id;
  }
  const bool mapped = ForEachMapping(d, address, bytes, [&](uint64_t, Mapping* m) {
    m->devices = (m->devices | given) & ~taken;
    if (m->devices == 0 || access != 0) m->access = access;
  });
  if (!mapped) return CUDA_ERROR_INVALID_VALUE;
  HostTakesBytes(bytes);
  if (taken != 0) d.memory.Changed();
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  SIMGPU_ENTER(cuMemGetAccess);
  const Mapping* mapping = d.memory.FindMapping(address, nullptr);
  if (flags == nullptr || location == nullptr || mapping == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = (mapping->devices >> location->id & 1) != 0 ? mapping->access : 0;
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp* prop,
                                         CUmemAllocationGranularity_flags) {
  SIMGPU_ENTER(cuMemGetAllocationGranularity);
  if (bytes == nullptr || !ValidProps(d, prop)) return CUDA_ERROR_INVALID_VALUE;
  *bytes = kPage;
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle) {
  SIMGPU_ENTER(cuMemGetAllocationPropertiesFromHandle);
  const Handle* h = Find(d, handle);
  if (prop == nullptr || h == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *prop = {};
  prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop->location.id = h->device;
  prop->requestedHandleTypes = static_cast<CUmemAllocationHandleType>(h->handle_types);
  return CUDA_SUCCESS;
}

// Memory can be exported "if requested via ::cuMemCreate" (cuda.h, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_...). The descriptor
// is the caller's, a file whose path has the device's ordinal.
SIMGPU_API cuMemExportToShareableHandle(void* result, CUmemGenericAllocationHandle handle,
                                        CUmemAllocationHandleType type, unsigned long long flags) {
  SIMGPU_ENTER(cuMemExportToShareableHandle);
  Handle* h = Find(d, handle);
  if (result == nullptr || h == nullptr || flags != 0 || type == CU_MEM_HANDLE_TYPE_NONE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  if ((h->handle_types & type) != type) return CUDA_ERROR_INVALID_VALUE;
  HostTakesBytes(h->bytes);
  const int shared = h->backing.Share((kSharedMemory + std::to_string(h->device)).c_str());
  const int descriptor = shared < 0 ? -1 : fcntl(shared, F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(result) = descriptor;
  return CUDA_SUCCESS;
}

// cuda.h: a file descriptor comes as a pointer. It stays the caller's. The memory counts for the process that made it,
// so it takes nothing of this one's simulated device.
SIMGPU_API cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* result, void* os_handle,
                                          CUmemAllocationHandleType type) {
  SIMGPU_ENTER(cuMemImportFromShareableHandle);
  SIMGPU_STRICT_CONTEXT();
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const auto descriptor = static_cast<int>(reinterpret_cast<intptr_t>(os_handle));
  const int device = DeviceOfShared(descriptor);
  struct stat file = {};
  if (device < 0 || fstat(descriptor, &file) != 0 || file.st_size <= 0) return CUDA_ERROR_INVALID_HANDLE;
  if (device >= static_cast<int>(d.devices.size())) return CUDA_ERROR_INVALID_DEVICE;
  auto handle = std::make_unique<Handle>(static_cast<uint64_t>(file.st_size));
  HostTakesBytes(handle->bytes);
  handle->device = device;
  handle->handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  handle->imported = true;
  const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0 || !handle->backing.Adopt(own)) {
    if (own >= 0) close(own);
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  *result = reinterpret_cast<CUmemGenericAllocationHandle>(handle.get());
  d.handles.emplace(handle.get(), std::move(handle));
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  SIMGPU_ENTER(cuMemRetainAllocationHandle);
  const Mapping* mapping = d.memory.FindMapping(reinterpret_cast<uint64_t>(address), nullptr);
  if (handle == nullptr || mapping == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ++mapping->handle->references;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(mapping->handle);
  return CUDA_SUCCESS;
}

}  // namespace simgpu
