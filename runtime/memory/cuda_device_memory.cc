#include "runtime/memory/cuda_device_memory.h"

#include <algorithm>

namespace hotpack {

MemoryStatus ToMemoryStatus(CUresult result) {
  switch (result) {
    case CUDA_SUCCESS:
      return MemoryStatus::kOk;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return MemoryStatus::kOutOfMemory;
    case CUDA_ERROR_NOT_SUPPORTED:
      return MemoryStatus::kNotSupported;
    case CUDA_ERROR_DEINITIALIZED:
      return MemoryStatus::kDeinitialized;
    default:
      return MemoryStatus::kFailed;
  }
}

ContextMemory::Scope::Scope(const ContextMemory& memory) : driver_(memory.driver_) {
  CUcontext current = nullptr;
  if (memory.context_ != nullptr && (driver_->CtxGetCurrent(&current) != CUDA_SUCCESS || current != memory.context_)) {
    const CUresult result = driver_->CtxPushCurrent(memory.context_);
    pushed_ = result == CUDA_SUCCESS;
    if (!pushed_) status_ = result == CUDA_ERROR_DEINITIALIZED ? MemoryStatus::kDeinitialized : MemoryStatus::kFailed;
  }
  if (driver_->ThreadExchangeStreamCaptureMode != nullptr) {
    exchanged_ = driver_->ThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
  }
}

ContextMemory::Scope::~Scope() {
  if (exchanged_) RestoreCaptureMode(*driver_, &mode_);
  if (pushed_) PopContext(*driver_);
}

MemoryStatus ContextMemory::Count(CUresult result) {
  driver_calls_.fetch_add(1, std::memory_order_relaxed);
  return ToMemoryStatus(result);
}

bool ContextMemory::Synchronize() {
  driver_calls_.fetch_add(1, std::memory_order_relaxed);
  if (synchronize_ != nullptr) return synchronize_(context_, kNoLimit) == DeviceWait::kDone;
  Scope scope(*this);
  return scope && driver_->CtxSynchronize() == CUDA_SUCCESS;
}

DeviceWait ContextMemory::SynchronizeWithin(uint64_t microseconds) {
  if (synchronize_ == nullptr) return DeviceMemory::SynchronizeWithin(microseconds);
  driver_calls_.fetch_add(1, std::memory_order_relaxed);
  return synchronize_(context_, microseconds);
}

namespace {

// Called before the driver call, so that the driver's result can be recorded even if the host's heap is exhausted.
template <typename T>
void ReserveOne(std::vector<T>* list) {
  if (list->size() == list->capacity()) list->reserve(2 * list->size() + 16);
}

// A context for calls after the end of their own one, in a thread that has none, or the one that ended. Virtual memory
// belongs to no context, so any will do. The device's primary context is made only if the driver asks for one.
class SpareContext {
 public:
  SpareContext(const CudaDriver& driver, CUdevice device) : driver_(driver), device_(device) {}
  ~SpareContext() {
    if (pushed_) PopContext(driver_);
    if (retained_) driver_.DevicePrimaryCtxRelease(device_);
  }
  SpareContext(const SpareContext&) = delete;
  SpareContext& operator=(const SpareContext&) = delete;

  // call() -> CUresult
  template <typename DriverCall>
  void Call(DriverCall call) {
    const CUresult result = call();
    if (result != CUDA_ERROR_INVALID_CONTEXT && result != CUDA_ERROR_CONTEXT_IS_DESTROYED) return;
    if (!pushed_ && MakeCurrent()) call();
  }

 private:
  bool MakeCurrent() {
    if (driver_.DevicePrimaryCtxRetain == nullptr || driver_.DevicePrimaryCtxRelease == nullptr) return false;
    retained_ = retained_ || driver_.DevicePrimaryCtxRetain(&context_, device_) == CUDA_SUCCESS;
    pushed_ = retained_ && driver_.CtxPushCurrent(context_) == CUDA_SUCCESS;
    return pushed_;
  }

  const CudaDriver& driver_;
  const CUdevice device_;
  CUcontext context_ = nullptr;
  bool retained_ = false, pushed_ = false;
};

bool HasVirtualMemoryManagement(const CudaDriver& driver) {
  return driver.MemGetAllocationGranularity && driver.MemAddressReserve && driver.MemAddressFree && driver.MemCreate &&
         driver.MemRelease && driver.MemMap && driver.MemUnmap && driver.MemSetAccess;
}

}  // namespace

CUmemAllocationProp CudaDeviceMemory::Prop() const {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  const bool shareable = shareable_.load(std::memory_order_relaxed);
  prop.requestedHandleTypes = shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device_;
  prop.allocFlags.gpuDirectRDMACapable = rdma_.load(std::memory_order_relaxed) ? 1 : 0;
  return prop;
}

MemoryStatus CudaDeviceMemory::Initialize() {
  CUresult result = driver_->CtxGetDevice(&device_);
  if (result != CUDA_SUCCESS) return ToMemoryStatus(result);
  size_t total = 0;
  result = driver_->DeviceTotalMem(&total, device_);
  if (result != CUDA_SUCCESS) return ToMemoryStatus(result);
  total_bytes_ = total;
  int vmm = 0;
  result = driver_->DeviceGetAttribute(&vmm, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device_);
  if (result != CUDA_SUCCESS || vmm == 0 || !HasVirtualMemoryManagement(*driver_)) return MemoryStatus::kNotSupported;
  int rdma = 0;  // memory of cuMemAlloc has it by default
  result = driver_->DeviceGetAttribute(&rdma, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device_);
  rdma_ = result == CUDA_SUCCESS && rdma != 0;
  int shareable = 0;
  result =
      driver_->DeviceGetAttribute(&shareable, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device_);
  shareable_ = result == CUDA_SUCCESS && shareable != 0;
  const CUmemAllocationProp prop = Prop();
  size_t granularity = 0;
  result = driver_->MemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (result != CUDA_SUCCESS) return ToMemoryStatus(result);
  const bool power_of_two = granularity != 0 && (granularity & (granularity - 1)) == 0;
  if (!power_of_two) return MemoryStatus::kNotSupported;
  chunk_bytes_ = std::max<uint64_t>(granularity, 64u << 10);
  supported_ = true;
  return MemoryStatus::kOk;
}

MemoryStatus CudaDeviceMemory::Reserve(uint64_t bytes, DeviceAddress* base) {
  if (!supported_) return MemoryStatus::kNotSupported;
  CUdeviceptr address = 0;
  WithLock([this] { ReserveOne(&reserved_); });
  const MemoryStatus status =
      InContext([&] { return driver_->MemAddressReserve(&address, bytes, chunk_bytes_, 0, 0); });
  if (status != MemoryStatus::kOk) return status;
  *base = address;
  std::lock_guard<std::mutex> lock(mutex_);
  reserved_.push_back({address, bytes});
  return status;
}

MemoryStatus CudaDeviceMemory::Unreserve(DeviceAddress base, uint64_t bytes) {
  if (!supported_) return MemoryStatus::kNotSupported;
  const MemoryStatus status = InContext([&] { return driver_->MemAddressFree(base, bytes); });
  if (status != MemoryStatus::kOk) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(reserved_, [base](const Range& range) { return range.base == base; });
  return status;
}

MemoryStatus CudaDeviceMemory::CreateChunk(uint64_t bytes, ChunkHandle* chunk) {
  if (!supported_) return MemoryStatus::kNotSupported;
  const CUmemAllocationProp prop = Prop();
  CUmemGenericAllocationHandle handle = 0;
  MemoryStatus status;
  bool within = false;
  WithLock([&] {
    ReserveOne(&chunks_);
    within = held_ + bytes <= limit();
  });
  if (!within) return MemoryStatus::kOutOfMemory;
  {
    Scope scope(*this);
    if (!scope) return scope.status();
    status = Count(driver_->MemCreate(&handle, bytes, &prop, 0));
    const bool refused = status == MemoryStatus::kFailed || status == MemoryStatus::kNotSupported;
    const bool simplest = prop.allocFlags.gpuDirectRDMACapable == 0 && prop.requestedHandleTypes == 0;
    if (refused && !simplest) {  // better without RDMA and handles than no memory at all
      rdma_ = shareable_ = false;
      const CUmemAllocationProp simple = Prop();
      status = Count(driver_->MemCreate(&handle, bytes, &simple, 0));
    }
  }
  if (status != MemoryStatus::kOk) return status;
  *chunk = handle;
  std::lock_guard<std::mutex> lock(mutex_);
  chunks_.push_back({handle, bytes});
  held_ += bytes;
  return status;
}

MemoryStatus CudaDeviceMemory::ReleaseChunk(ChunkHandle chunk) {
  if (!supported_) return MemoryStatus::kNotSupported;
  bool ours = false;
  Chunk released = {chunk, 0};
  {
    // First remove it from the list: the driver may give the same handle to another thread's next CreateChunk.
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found =
        std::find_if(chunks_.rbegin(), chunks_.rend(), [chunk](const Chunk& c) { return c.handle == chunk; });
    ours = found != chunks_.rend();
    if (ours) {
      released = *found;
      held_ -= released.bytes;
      *found = chunks_.back();
      chunks_.pop_back();
    }
  }
  const MemoryStatus status = InContext([&] { return driver_->MemRelease(chunk); });
  if (status == MemoryStatus::kOk || !ours) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  chunks_.push_back(released);  // still held
  held_ += released.bytes;
  return status;
}

uint64_t CudaDeviceMemory::AvailableBytes() {
  size_t free = 0, total = 0;
  if (!supported_ || driver_->MemGetInfo == nullptr) return UINT64_MAX;
  {
    Scope scope(*this);
    if (!scope || Count(driver_->MemGetInfo(&free, &total)) != MemoryStatus::kOk) return UINT64_MAX;
  }
  uint64_t held = 0;
  WithLock([&] { held = held_; });
  return std::min<uint64_t>(free, limit() - std::min(limit(), held));
}

MemoryStatus CudaDeviceMemory::Map(DeviceAddress address, uint64_t bytes, ChunkHandle chunk) {
  if (!supported_) return MemoryStatus::kNotSupported;
  WithLock([this] { ReserveOne(&mapped_); });
  const MemoryStatus status = InContext([&] { return driver_->MemMap(address, bytes, 0, chunk, 0); });
  if (status != MemoryStatus::kOk) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  auto next = std::lower_bound(mapped_.begin(), mapped_.end(), address,
                               [](const Range& range, DeviceAddress a) { return range.base < a; });
  mapped_.insert(next, {address, bytes});
  return status;
}

// Joins adjacent mappings.
std::vector<CudaDeviceMemory::Range> CudaDeviceMemory::Stretches(const std::vector<Range>& mapped) {
  std::vector<Range> stretches;
  for (const Range& range : mapped) {
    const bool joins = !stretches.empty() && stretches.back().base + stretches.back().bytes == range.base;
    if (!joins) stretches.push_back({range.base, 0});
    stretches.back().bytes += range.bytes;
  }
  return stretches;
}

CUresult CudaDeviceMemory::SetAccess(DeviceAddress address, uint64_t bytes,
                                     const std::vector<CUdevice>& devices) const {
  std::vector<CUmemAccessDesc> access(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    access[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access[i].location.id = devices[i];
    access[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  return driver_->MemSetAccess(address, bytes, access.data(), access.size());
}

MemoryStatus CudaDeviceMemory::Enable(DeviceAddress address, uint64_t bytes) {
  if (!supported_) return MemoryStatus::kNotSupported;
  std::vector<CUdevice> devices = {device_};
  {
    std::lock_guard<std::mutex> lock(mutex_);
    devices.insert(devices.end(), peers_.begin(), peers_.end());
  }
  Scope scope(*this);
  if (!scope) return scope.status();
  MemoryStatus status = Count(SetAccess(address, bytes, devices));
  if (status != MemoryStatus::kOk && devices.size() > 1) status = Count(SetAccess(address, bytes, {device_}));
  return status;
}

// First adds the device to the list, then handles existing mappings: memory mapped meanwhile finds the device in the
// list.
void CudaDeviceMemory::AddPeer(CUdevice device) {
  if (!supported_ || device == device_) return;
  std::vector<Range> mapped;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::find(peers_.begin(), peers_.end(), device) != peers_.end()) return;
    peers_.push_back(device);
    mapped = mapped_;
  }
  Scope scope(*this);
  if (!scope) {
    WithLock([&] { std::erase(peers_, device); });
    return;
  }
  for (const Range& stretch : Stretches(mapped)) {
    if (Count(SetAccess(stretch.base, stretch.bytes, {device})) == MemoryStatus::kOk) continue;
    for (const Range& range : mapped) {  // part of it has been unmapped meanwhile
      if (range.base - stretch.base < stretch.bytes) Count(SetAccess(range.base, range.bytes, {device}));
    }
  }
}

bool CudaDeviceMemory::CopiesReach(CUdevice device) {
  if (device == device_) return true;
  std::lock_guard<std::mutex> lock(mutex_);
  return std::find(peers_.begin(), peers_.end(), device) != peers_.end();
}

MemoryStatus CudaDeviceMemory::Unmap(DeviceAddress address, uint64_t bytes) {
  if (!supported_) return MemoryStatus::kNotSupported;
  const MemoryStatus status = InContext([&] { return driver_->MemUnmap(address, bytes); });
  if (status != MemoryStatus::kOk) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(mapped_, [=](const Range& range) { return range.base - address < bytes; });
  return status;
}

void CudaDeviceMemory::ReleaseAll(bool context_alive) {
  if (!supported_) return;
  std::vector<Range> reserved, mapped;
  std::vector<Chunk> chunks;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    reserved.swap(reserved_);
    mapped.swap(mapped_);
    chunks.swap(chunks_);
    held_ = 0;
  }
  const bool pushed = context_alive && driver_->CtxPushCurrent(context_) == CUDA_SUCCESS;
  {
    SpareContext spare(*driver_, device_);
    for (const Range& range : Stretches(mapped)) spare.Call([&] { return driver_->MemUnmap(range.base, range.bytes); });
    for (const Chunk& chunk : chunks) spare.Call([&] { return driver_->MemRelease(chunk.handle); });
    for (const Range& range : reserved) spare.Call([&] { return driver_->MemAddressFree(range.base, range.bytes); });
  }
  if (pushed) PopContext(*driver_);
}

}  // namespace hotpack
