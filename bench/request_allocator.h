// The allocators that request_bench compares, behind one interface.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace hotpack::bench {

// Both functions return 0 on success, else the allocator's error code. Work and requests are for the legacy default
// stream.
struct RequestAllocator {
  int (*allocate)(void** pointer, size_t bytes) = nullptr;
  int (*release)(void* pointer) = nullptr;
};

// The runtime library and the context on device 0. One per process.
class RequestDevice {
 public:
  // Loads the shared runtime and creates the context. The error is one line.
  static absl::StatusOr<std::unique_ptr<RequestDevice>> Open();
  virtual ~RequestDevice() = default;

  // Returns the allocator of a name:
  //   cuda         cudaMalloc, cudaFree
  //   cuda-async   cudaMallocAsync, cudaFreeAsync; the default pool's release threshold is raised, so that it keeps all
  //                memory
  //   hotpack      hotpack_malloc, hotpack_free
  //   none         returns one address, does nothing
  virtual absl::StatusOr<RequestAllocator> Choose(const std::string& name) = 0;

  // Submits a write of the block's first bytes to the default stream, the block's first use. Returns 0 or the runtime's
  // error.
  virtual int Touch(void* pointer, size_t bytes) = 0;
  // Waits for all submitted work. Returns 0 or the runtime's error.
  virtual int Synchronize() = 0;
};

}  // namespace hotpack::bench
