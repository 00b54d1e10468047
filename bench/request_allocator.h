// The allocators that request_bench compares, all called in the same way.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace hotpack::bench {

// Both return 0 on success, else an error code of the allocator. Work and requests are for the legacy default stream.
struct RequestAllocator {
  int (*allocate)(void** pointer, size_t bytes) = nullptr;
  int (*release)(void* pointer) = nullptr;
};

// The runtime library and the context on device 0. One a process.
class RequestDevice {
 public:
  // Loads the shared runtime and creates the context. The error is one line.
  static absl::StatusOr<std::unique_ptr<RequestDevice>> Open();
  virtual ~RequestDevice() = default;

  // cuda: cudaMalloc, cudaFree. cuda-async: cudaMallocAsync, cudaFreeAsync; the default pool's release threshold is
  // raised so that it keeps all it has. hotpack: hotpack_malloc, hotpack_free. none: hands out one address, does
  // nothing.
  virtual absl::StatusOr<RequestAllocator> Choose(const std::string& name) = 0;

  // Submits a write of the block's first bytes to the default stream: its first use. 0, or the runtime's error.
  virtual int Touch(void* pointer, size_t bytes) = 0;
  // Waits for all that was submitted. 0, or the runtime's error.
  virtual int Synchronize() = 0;
};

}  // namespace hotpack::bench
