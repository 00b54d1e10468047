// Where the training programs' tensors live: the seam between the models and CUDA (or, in tests, the host).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace hotpack::train {

// One allocation call a tensor, one release call a tensor: nothing is pooled here. Failures throw std::runtime_error
// with one line; a failed release (which happens in destructors) is kept and thrown by the next other call.
//
// Work goes to the compute stream. With two streams, the next batch's inputs are copied on the copy stream while the
// present one is computed; with one stream the same calls do the same on the compute stream. Not thread-safe.
class Device {
 public:
  virtual ~Device() = default;
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Release(void* pointer) noexcept = 0;
  // On the compute stream; `host` may be reused on return.
  virtual void CopyIn(void* device, const void* host, size_t bytes) = 0;
  virtual void CopyOut(void* host, const void* device, size_t bytes) = 0;  // waits for all compute work before it

  // Memory that the copy stream fills and that compute work then reads; released by Release().
  virtual void* AllocateForCopy(size_t bytes) { return Allocate(bytes); }
  // Starts a copy on the copy stream, through pinned memory of the device object; `host` may be reused on return.
  virtual void StartCopyIn(void* device, const void* host, size_t bytes) { CopyIn(device, host, bytes); }
  // Compute work from here on runs after all copies started so far.
  virtual void WaitForCopies() {}

  virtual std::string Name() const = 0;
};

enum class AllocatorKind {
  kCuda,       // cudaMalloc, cudaFree
  kCudaAsync,  // cudaMallocAsync, cudaFreeAsync on the tensor's stream
  kHotpack,    // hotpack_malloc, hotpack_free: the C interface
};

struct DeviceOptions {
  AllocatorKind allocator = AllocatorKind::kCuda;
  int streams = 1;  // 1: all work on the default stream; 2: one of our own for computing and one for copies
};

std::unique_ptr<Device> MakeCudaDevice(const DeviceOptions& options);
std::unique_ptr<Device> MakeHostDevice();  // malloc and free; for tests of the kernels and the models

}  // namespace hotpack::train
