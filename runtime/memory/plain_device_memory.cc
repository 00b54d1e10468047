#include "runtime/memory/plain_device_memory.h"

#include <algorithm>

namespace hotpack {
namespace {

constexpr uint64_t kMinChunks = 64;

}  // namespace

MemoryStatus PlainDeviceMemory::Initialize() {
  CUresult result = driver_->CtxGetDevice(&device_);
  if (result != CUDA_SUCCESS) return ToMemoryStatus(result);
  if (driver_->MemGetInfo == nullptr) return MemoryStatus::kNotSupported;
  size_t free = 0, total = 0;
  result = driver_->MemGetInfo(&free, &total);
  if (result != CUDA_SUCCESS) return ToMemoryStatus(result);
  const uint64_t wanted = wanted_bytes_ == kDefault ? free / 10 * 9 : std::min<uint64_t>(wanted_bytes_, total);
  total_bytes_ = wanted / chunk_bytes_ * chunk_bytes_;
  supported_ = total_bytes_ >= kMinChunks * chunk_bytes_;
  return Status();
}

MemoryStatus PlainDeviceMemory::Reserve(uint64_t bytes, DeviceAddress* base) {
  if (!supported_) return MemoryStatus::kNotSupported;
  if (bytes > total_bytes_ || allocation_.load() != 0) return MemoryStatus::kOutOfMemory;
  CUdeviceptr address = 0;
  // cuMemAlloc guarantees a smaller alignment.
  const MemoryStatus status = InContext([&] { return driver_->MemAlloc(&address, bytes + chunk_bytes_); });
  if (status != MemoryStatus::kOk) return status;
  allocation_.store(address);
  *base = (address + chunk_bytes_ - 1) & ~(chunk_bytes_ - 1);
  return status;
}

MemoryStatus PlainDeviceMemory::Unreserve(DeviceAddress, uint64_t) {
  const CUdeviceptr address = allocation_.exchange(0);
  if (address == 0) return MemoryStatus::kFailed;
  const MemoryStatus status = InContext([&] { return driver_->MemFree(address); });
  if (status != MemoryStatus::kOk) allocation_.store(address);  // still held
  return status;
}

MemoryStatus PlainDeviceMemory::CreateChunk(uint64_t, ChunkHandle* chunk) {
  *chunk = 1;  // all chunks are alike
  return Status();
}

MemoryStatus PlainDeviceMemory::ReleaseChunk(ChunkHandle) { return Status(); }
MemoryStatus PlainDeviceMemory::Map(DeviceAddress, uint64_t, ChunkHandle) { return Status(); }
MemoryStatus PlainDeviceMemory::Enable(DeviceAddress, uint64_t) { return Status(); }
MemoryStatus PlainDeviceMemory::Unmap(DeviceAddress, uint64_t) { return Status(); }

void PlainDeviceMemory::ReleaseAll(bool context_alive) {
  const CUdeviceptr address = allocation_.exchange(0);
  if (address == 0 || !context_alive) return;  // memory of cuMemAlloc is released with its context
  if (driver_->CtxPushCurrent(context_) != CUDA_SUCCESS) return;
  driver_->MemFree(address);
  PopContext(*driver_);
}

}  // namespace hotpack
