// hotpack_export and hotpack_import: memory of blocks in other processes, as file descriptors of the handles below
// them. PyTorch's expandable segments are shared in the same way.
#include <unistd.h>

#include <map>
#include <mutex>
#include <vector>

#include "preload/process/current_scope.h"
#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"
#include "preload/streams/stream_order.h"
#include "runtime/include/hotpack.h"
#include "runtime/process/arena_table.h"

namespace hotpack {
namespace {

constexpr uint64_t kLongestWaitUs = 1'000'000;
constexpr CUmemAllocationHandleType kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

void Close(hotpack_piece* pieces, size_t count) {
  for (size_t i = 0; i < count; ++i) close(pieces[i].descriptor);
}

CUresult Export(const CudaDriver& driver, DeviceAddress address, uint64_t bytes, hotpack_piece* pieces, size_t capacity,
                size_t* count, uint64_t* offset) {
  const ContextArena* arena = Arenas().FindOwner(address);
  DeviceAddress base = 0;
  uint64_t block = 0;
  if (arena == nullptr || !arena->engine->FindBlock(address, &base, &block) || bytes > base + block - address)
    return CUDA_ERROR_NOT_FOUND;
  std::vector<MappedExtent> extents;
  arena->engine->ListPieces(address, bytes, &extents);
  if (extents.empty()) return CUDA_ERROR_NOT_FOUND;
  if (driver.MemExport == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  *count = extents.size();
  *offset = address - extents[0].begin;
  if (extents.size() > capacity) return CUDA_SUCCESS;
  const CurrentScope scope(driver, arena->context);
  for (size_t i = 0; i < extents.size(); ++i) {
    int file = -1;
    CUresult result = scope ? driver.MemExport(&file, extents[i].extent.handle, kFile, 0) : CUDA_ERROR_INVALID_CONTEXT;
    if (result != CUDA_SUCCESS) {
      Close(pieces, i);
      // A handle that was made without a type, where the device has none.
      return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_NOT_SUPPORTED : result;
    }
    pieces[i] = {extents[i].extent.bytes, file, arena->memory->device()};
  }
  return CUDA_SUCCESS;
}

// Mappings of other processes' memory, by address.
class Imports {
 public:
  CUresult Add(const CudaDriver& driver, const hotpack_piece* pieces, size_t count, CUdeviceptr* address);
  CUresult Remove(const CudaDriver& driver, CUdeviceptr address);

 private:
  struct Import {
    uint64_t bytes = 0;
    std::vector<uint64_t> mapped;  // bytes of each piece
  };
  static void Unmap(const CudaDriver& driver, CUdeviceptr address, const Import& import);

  std::mutex mutex_;  // never held across a driver call
  std::map<CUdeviceptr, Import> all_;
};

void Imports::Unmap(const CudaDriver& driver, CUdeviceptr address, const Import& import) {
  CUdeviceptr at = address;
  for (const uint64_t bytes : import.mapped) {
    driver.MemUnmap(at, bytes);
    at += bytes;
  }
  driver.MemAddressFree(address, import.bytes);
}

CUresult Imports::Add(const CudaDriver& driver, const hotpack_piece* pieces, size_t count, CUdeviceptr* address) {
  if (driver.MemImport == nullptr || driver.MemMap == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUdevice device = 0;
  CUresult result = driver.CtxGetDevice(&device);
  if (result != CUDA_SUCCESS) return result;
  Import import;
  for (size_t i = 0; i < count; ++i) import.bytes += pieces[i].bytes;
  import.mapped.reserve(count);
  result = driver.MemAddressReserve(address, import.bytes, 0, 0, 0);
  if (result != CUDA_SUCCESS) return result;
  CUdeviceptr at = *address;
  for (size_t i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    CUmemGenericAllocationHandle handle = 0;
    result = driver.MemImport(&handle, reinterpret_cast<void*>(static_cast<intptr_t>(pieces[i].descriptor)), kFile);
    if (result != CUDA_SUCCESS) break;
    result = driver.MemMap(at, pieces[i].bytes, 0, handle, 0);
    if (result == CUDA_SUCCESS) import.mapped.push_back(pieces[i].bytes);
    driver.MemRelease(handle);  // the mapping keeps the memory
    at += pieces[i].bytes;
  }
  CUmemAccessDesc access = {};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (result == CUDA_SUCCESS) result = driver.MemSetAccess(*address, import.bytes, &access, 1);
  if (result != CUDA_SUCCESS) {
    Unmap(driver, *address, import);
    return result;
  }
  try {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.emplace(*address, import);
  } catch (...) {
    Unmap(driver, *address, import);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

CUresult Imports::Remove(const CudaDriver& driver, CUdeviceptr address) {
  Import import;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!all_.contains(address)) return CUDA_ERROR_INVALID_VALUE;
  }
  switch (Order().SynchronizeWithin(CurrentContext(driver), kLongestWaitUs)) {
    case DeviceWait::kDone:
      break;
    case DeviceWait::kUnfinished:
      return CUDA_ERROR_NOT_READY;
    case DeviceWait::kNotNow:
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = all_.find(address);
    if (found == all_.end()) return CUDA_ERROR_INVALID_VALUE;
    import = std::move(found->second);
    all_.erase(found);
  }
  Unmap(driver, address, import);
  return CUDA_SUCCESS;
}

Imports& ImportsOfProcess() {
  static Imports* const imports = new Imports;  // used until the process ends
  return *imports;
}

}  // namespace
}  // namespace hotpack

extern "C" {

int hotpack_export(const void* pointer, size_t bytes, hotpack_piece* pieces, size_t capacity, size_t* count,
                   uint64_t* offset) {
  const hotpack::CudaDriver* driver = hotpack::Driver();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (bytes == 0 || count == nullptr || offset == nullptr || (capacity > 0 && pieces == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  hotpack::HookScope scope;
  try {
    return hotpack::Export(*driver, reinterpret_cast<CUdeviceptr>(pointer), bytes, pieces, capacity, count, offset);
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

int hotpack_import(const hotpack_piece* pieces, size_t count, void** pointer) {
  const hotpack::CudaDriver* driver = hotpack::Driver();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (pieces == nullptr || count == 0 || pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  hotpack::HookScope scope;
  CUdeviceptr address = 0;
  try {
    const CUresult result = hotpack::ImportsOfProcess().Add(*driver, pieces, count, &address);
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
    return result;
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

int hotpack_end_import(void* pointer) {
  const hotpack::CudaDriver* driver = hotpack::Driver();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  hotpack::HookScope scope;
  try {
    return hotpack::ImportsOfProcess().Remove(*driver, reinterpret_cast<CUdeviceptr>(pointer));
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

}  // extern "C"
