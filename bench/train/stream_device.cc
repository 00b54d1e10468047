#include "bench/train/stream_device.h"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "bench/train/launch_stream.h"

namespace hotpack::train {

StreamDevice::StreamDevice(std::unique_ptr<DeviceApi> api, const DeviceOptions& options)
    : api_(std::move(api)), options_(options) {
  if (options_.streams == 2) {
    compute_ = api_->StreamCreate();
    copy_ = api_->StreamCreate();
    copied_ = api_->EventCreate();
    for (Staging& staging : staging_) staging.read = api_->EventCreate();
  }
  launch_stream = compute_;
}

StreamDevice::~StreamDevice() {
  launch_stream = nullptr;
  if (options_.streams != 2) return;
  try {
    api_->StreamSynchronize(copy_);
    api_->StreamSynchronize(compute_);
    for (Staging& staging : staging_) {
      if (staging.memory != nullptr) api_->HostFree(staging.memory);
      api_->EventDestroy(staging.read);
    }
    api_->EventDestroy(copied_);
    api_->StreamDestroy(copy_);
    api_->StreamDestroy(compute_);
  } catch (const std::exception&) {
    // A wait has already reported failed work, and the process is about to end.
  }
}

void* StreamDevice::AllocateOn(size_t bytes, void* stream) {
  ThrowIfReleaseFailed();
  if (options_.allocator == AllocatorKind::kCuda) return api_->Malloc(bytes);
  if (options_.allocator == AllocatorKind::kCudaAsync) return api_->MallocAsync(bytes, stream);
  return api_->HotpackMalloc(bytes, stream);
}

// Compute work is the last use of all memory, even of inputs that the copy stream filled, because it waited for the
// copy.
void StreamDevice::Release(void* pointer) noexcept {
  try {
    if (options_.allocator == AllocatorKind::kCuda) {
      api_->Free(pointer);
    } else if (options_.allocator == AllocatorKind::kCudaAsync) {
      api_->FreeAsync(pointer, compute_);
    } else {
      api_->HotpackFree(pointer, compute_);
    }
  } catch (const std::exception& error) {
    if (release_error_.empty()) release_error_ = error.what();
  }
}

void StreamDevice::CopyIn(void* device, const void* host, size_t bytes) {
  ThrowIfReleaseFailed();
  if (compute_ == nullptr) return api_->CopyIn(device, host, bytes);
  api_->CopyInAsync(device, host, bytes, compute_);
  api_->StreamSynchronize(compute_);
}

void StreamDevice::CopyOut(void* host, const void* device, size_t bytes) {
  ThrowIfReleaseFailed();
  if (compute_ == nullptr) return api_->CopyOut(host, device, bytes);
  api_->CopyOutAsync(host, device, bytes, compute_);
  api_->StreamSynchronize(compute_);
}

// The copy stream does not wait, because the allocation alone makes the memory fresh. cudaMallocAsync orders it after
// its earlier use, and cudaMalloc returns no memory that may still be in use. So an allocator that returns memory too
// early is detected.
void StreamDevice::StartCopyIn(void* device, const void* host, size_t bytes) {
  if (copy_ == nullptr) return CopyIn(device, host, bytes);
  ThrowIfReleaseFailed();
  Staging& staging = TakeStaging(bytes);
  std::memcpy(staging.memory, host, bytes);
  api_->CopyInAsync(device, staging.memory, bytes, copy_);
  api_->EventRecord(staging.read, copy_);
}

void StreamDevice::WaitForCopies() {
  if (copy_ == nullptr) return;
  api_->EventRecord(copied_, copy_);
  api_->StreamWaitEvent(compute_, copied_);
}

StreamDevice::Staging& StreamDevice::TakeStaging(size_t bytes) {
  Staging& staging = staging_[next_staging_];
  next_staging_ = (next_staging_ + 1) % staging_.size();
  if (staging.memory != nullptr) api_->EventSynchronize(staging.read);
  if (staging.bytes < bytes) {
    if (staging.memory != nullptr) api_->HostFree(std::exchange(staging.memory, nullptr));
    staging.memory = api_->HostAlloc(bytes);
    staging.bytes = bytes;
  }
  return staging;
}

std::string StreamDevice::Name() const {
  const std::string name = options_.allocator == AllocatorKind::kHotpack
                               ? "hotpack_malloc"
                               : api_->AllocateName(options_.allocator == AllocatorKind::kCudaAsync);
  return options_.streams == 2 ? name + " with a stream for copies" : name;
}

void StreamDevice::ThrowIfReleaseFailed() const {
  if (!release_error_.empty()) throw std::runtime_error(release_error_);
}

}  // namespace hotpack::train
