// Where the training programs' tensors live: the seam between the models and CUDA (or, in tests, the host).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace hotpack::train {

// Makes one allocation call and one release call per tensor, without a pool. Failures throw std::runtime_error with one
// line. A failed release (in a destructor) is stored, and the next other call throws it.
//
// Work goes to the compute stream. With two streams, the copy stream copies the next batch's inputs during the
// computation of the present one. With one stream the same calls use the compute stream. Not thread-safe.
class Device {
 public:
  virtual ~Device() = default;
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Release(void* pointer) noexcept = 0;
  // On the compute stream. `host` may be reused on return.
  virtual void CopyIn(void* device, const void* host, size_t bytes) = 0;
  virtual void CopyOut(void* host, const void* device, size_t bytes) = 0;  // waits for all compute work before it

  // Allocates memory that the copy stream fills and that compute work then reads. Release() releases it.
  virtual void* AllocateForCopy(size_t bytes) { return Allocate(bytes); }
  // Starts a copy on the copy stream, through the device object's pinned memory. `host` may be reused on return.
  virtual void StartCopyIn(void* device, const void* host, size_t bytes) { CopyIn(device, host, bytes); }
  // Later compute work runs after all copies started so far.
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
  // 1: all work on the default stream. 2: one stream for computing and one for copies.
  int streams = 1;
};

std::unique_ptr<Device> MakeCudaDevice(const DeviceOptions& options);
std::unique_ptr<Device> MakeHostDevice();  // malloc and free; for tests of the kernels and the models

}  // namespace hotpack::train
