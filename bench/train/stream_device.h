// Tensors in device memory, over any API: the stream of each call, and the waits between them.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "bench/train/device.h"

namespace hotpack::train {

// The calls of one API, cudart or the driver. Streams and events are handles of that API; a null stream is the default
// stream. Each call throws std::runtime_error with the name of the failed call.
class DeviceApi {
 public:
  virtual ~DeviceApi() = default;
  virtual void* Malloc(size_t bytes) = 0;
  virtual void Free(void* pointer) = 0;
  virtual void* MallocAsync(size_t bytes, void* stream) = 0;
  virtual void FreeAsync(void* pointer, void* stream) = 0;
  virtual void* HotpackMalloc(size_t bytes, void* stream) = 0;
  virtual void HotpackFree(void* pointer, void* stream) = 0;
  virtual void* HostAlloc(size_t bytes) = 0;  // pinned
  virtual void HostFree(void* pointer) = 0;
  virtual void* StreamCreate() = 0;  // ordered with no other stream, the default one included
  virtual void StreamDestroy(void* stream) = 0;
  virtual void StreamSynchronize(void* stream) = 0;
  virtual void StreamWaitEvent(void* stream, void* event) = 0;
  virtual void* EventCreate() = 0;
  virtual void EventDestroy(void* event) = 0;
  virtual void EventRecord(void* event, void* stream) = 0;
  virtual void EventSynchronize(void* event) = 0;
  virtual void CopyIn(void* device, const void* host, size_t bytes) = 0;  // on the default stream; synchronous
  virtual void CopyOut(void* host, const void* device, size_t bytes) = 0;
  virtual void CopyInAsync(void* device, const void* host, size_t bytes, void* stream) = 0;
  virtual void CopyOutAsync(void* host, const void* device, size_t bytes, void* stream) = 0;
  virtual std::string AllocateName(bool async) const = 0;  // "cudaMalloc", "cudaMallocAsync"
};

class StreamDevice : public Device {
 public:
  StreamDevice(std::unique_ptr<DeviceApi> api, const DeviceOptions& options);
  ~StreamDevice() override;

  void* Allocate(size_t bytes) override { return AllocateOn(bytes, compute_); }
  void Release(void* pointer) noexcept override;
  void CopyIn(void* device, const void* host, size_t bytes) override;
  void CopyOut(void* host, const void* device, size_t bytes) override;
  void* AllocateForCopy(size_t bytes) override { return AllocateOn(bytes, copy_); }
  void StartCopyIn(void* device, const void* host, size_t bytes) override;
  void WaitForCopies() override;
  std::string Name() const override;

 private:
  // Pinned memory from which copies read. It is reused when the copy that last read it has ended.
  struct Staging {
    void* memory = nullptr;
    size_t bytes = 0;
    void* read = nullptr;  // event
  };

  void* AllocateOn(size_t bytes, void* stream);
  Staging& TakeStaging(size_t bytes);
  void ThrowIfReleaseFailed() const;

  std::unique_ptr<DeviceApi> api_;
  DeviceOptions options_;
  void* compute_ = nullptr;
  void* copy_ = nullptr;
  void* copied_ = nullptr;  // event
  std::array<Staging, 8> staging_;
  size_t next_staging_ = 0;
  std::string release_error_;
};

}  // namespace hotpack::train
