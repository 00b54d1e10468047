// The common functions of both kinds of context memory, apart from the arena: managed memory, and the copies and
// memsets of debug mode.
#include "runtime/memory/cuda_device_memory.h"

namespace hotpack {

// Only where the device can fault pages in. Elsewhere managed memory occupies the device at once (CUDA programming
// guide, "Unified memory": oversubscription needs concurrent managed access).
MemoryStatus ContextMemory::AllocateManaged(uint64_t bytes, DeviceAddress* address) {
  if (driver_->MemAllocManaged == nullptr || driver_->MemFree == nullptr) return MemoryStatus::kNotSupported;
  Scope scope(*this);
  if (!scope) return scope.status();
  int concurrent = 0;
  CUresult result = driver_->DeviceGetAttribute(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device_);
  if (result == CUDA_SUCCESS && concurrent == 0) result = CUDA_ERROR_NOT_SUPPORTED;
  if (result != CUDA_SUCCESS) return ToMemoryStatus(result);
  CUdeviceptr managed = 0;
  const MemoryStatus status = Count(driver_->MemAllocManaged(&managed, bytes, CU_MEM_ATTACH_GLOBAL));
  if (status == MemoryStatus::kOk) *address = managed;
  return status;
}

MemoryStatus ContextMemory::FreeManaged(DeviceAddress address) {
  if (driver_->MemFree == nullptr) return MemoryStatus::kNotSupported;
  return InContext([&] { return driver_->MemFree(address); });
}

// The context must be current. Returns a stream that waits for no other, so that using it during a capture does not
// break that capture.
CUstream ContextMemory::OwnStream() {
  CUstream stream = own_stream_.load(std::memory_order_acquire);
  if (stream != nullptr || driver_->StreamCreate == nullptr) return stream;
  if (driver_->StreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return nullptr;
  CUstream expected = nullptr;  // if two threads race, one stream is left over until the context ends
  return own_stream_.compare_exchange_strong(expected, stream) ? stream : expected;
}

MemoryStatus ContextMemory::Fill(DeviceAddress address, uint64_t bytes, uint8_t value) {
  if (driver_->MemsetD8Async == nullptr) return MemoryStatus::kNotSupported;
  Scope scope(*this);
  if (!scope) return scope.status();
  CUstream stream = OwnStream();
  if (stream == nullptr) return MemoryStatus::kFailed;
  const MemoryStatus status = Count(driver_->MemsetD8Async(address, value, bytes, stream));
  return status == MemoryStatus::kOk ? Count(driver_->StreamSynchronize(stream)) : status;
}

MemoryStatus ContextMemory::Read(DeviceAddress address, uint64_t bytes, void* to) {
  if (driver_->MemcpyDtoHAsync == nullptr) return MemoryStatus::kNotSupported;
  Scope scope(*this);
  if (!scope) return scope.status();
  CUstream stream = OwnStream();
  if (stream == nullptr) return MemoryStatus::kFailed;
  const MemoryStatus status = Count(driver_->MemcpyDtoHAsync(to, address, bytes, stream));
  return status == MemoryStatus::kOk ? Count(driver_->StreamSynchronize(stream)) : status;
}

}  // namespace hotpack
