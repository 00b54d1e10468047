// The allocator interface of a PyTorch program: either libhotpack_torch.so, or a model that follows PyTorch's contract
// exactly.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

struct hotpack_stats;

namespace property {

using PoolId = std::pair<unsigned long long, unsigned long long>;

// An allocator. Thread-safe. `device` is an ordinal whose primary context exists; `stream` belongs to it. Sizes are
// bytes.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // Returns null if the device has no memory.
  virtual void* Malloc(size_t bytes, int device, CUstream stream) = 0;
  virtual void Free(void* pointer, size_t bytes, int device, CUstream stream) = 0;
  // `device`: that of `stream`, which may differ from the block's. PyTorch's pluggable allocators do not get it.
  virtual void RecordStream(void* pointer, int device, CUstream stream) = 0;
  virtual void EmptyCache() = 0;
  // Until EndPool, requests of `stream` come from the private pool `id`.
  virtual void BeginPool(int device, PoolId id, CUstream stream) = 0;
  virtual void EndPool(int device, PoolId id) = 0;
  virtual void ReleasePool(int device, PoolId id) = 0;
  // Whether the program must report blocks of private pools to the checker, because the allocator does not.
  virtual bool PoolsUntold() const = 0;

  // hotpack.h; a model has no plans.
  virtual void Step() {}
  virtual void WaitForPlan() {}
  virtual void SavePlan() {}
  virtual bool GetStats(hotpack_stats*) { return false; }
};

// Loads the library, as PyTorch does. Returns null if it cannot be loaded. Not before a fork, because the child would
// have it loaded too.
std::unique_ptr<Allocator> MakeHotpack();
std::unique_ptr<Allocator> MakeModel();

}  // namespace property
