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

// Thread-safe. `device` is an ordinal whose primary context exists; `stream` belongs to it. Sizes are bytes.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // Null: the device has no memory.
  virtual void* Malloc(size_t bytes, int device, CUstream stream) = 0;
  virtual void Free(void* pointer, size_t bytes, int device, CUstream stream) = 0;
  // `device`: that of `stream`, which need not be the block's; PyTorch's pluggable allocators are not told it.
  virtual void RecordStream(void* pointer, int device, CUstream stream) = 0;
  virtual void EmptyCache() = 0;
  // From here to EndPool requests of `stream` come from the private pool `id`.
  virtual void BeginPool(int device, PoolId id, CUstream stream) = 0;
  virtual void EndPool(int device, PoolId id) = 0;
  virtual void ReleasePool(int device, PoolId id) = 0;
  // The allocator does not tell the checker of blocks of private pools: the program does.
  virtual bool PoolsUntold() const = 0;

  // hotpack.h; a model has no plans.
  virtual void Step() {}
  virtual void WaitForPlan() {}
  virtual void SavePlan() {}
  virtual bool GetStats(hotpack_stats*) { return false; }
};

// Loads the library, as PyTorch does; null if it cannot be loaded. Not before a fork: the child would know of it.
std::unique_ptr<Allocator> MakeHotpack();
std::unique_ptr<Allocator> MakeModel();

}  // namespace property
