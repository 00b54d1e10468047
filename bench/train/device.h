// Where the training program's tensors live: the seam between the model and cudart (or, in tests, the host).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace hotpack::train {

// One allocation call a tensor, one release call a tensor: nothing is pooled here. Failures throw std::runtime_error
// with one line; a failed release (which happens in destructors) is kept and thrown by the next other call.
// Not thread-safe.
class Device {
 public:
  virtual ~Device() = default;
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Release(void* pointer) noexcept = 0;
  virtual void CopyIn(void* device, const void* host, size_t bytes) = 0;
  virtual void CopyOut(void* host, const void* device, size_t bytes) = 0;  // waits for all work before it
  virtual std::string Name() const = 0;
};

enum class AllocatorKind {
  kMalloc,  // cudaMalloc, cudaFree
  kAsync,   // cudaMallocAsync, cudaFreeAsync on the default stream
};

std::unique_ptr<Device> MakeCudaDevice(AllocatorKind kind);
std::unique_ptr<Device> MakeHostDevice();  // malloc and free; for tests of the kernels and the model

}  // namespace hotpack::train
