#include "runtime/process/pool_origins.h"

#include <sys/mman.h>

#include "packer/block_unit.h"
#include "runtime/engine/engine.h"

namespace hotpack {
namespace {}  // namespace

bool PoolOrigins::Make(const Engine& engine) {
  DeviceAddress base = 0;
  uint64_t bytes = 0;
  if (!engine.Reservation(&base, &bytes)) return false;
  void* fresh =
      mmap(nullptr, bytes / kBlockUnit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fresh == MAP_FAILED) return false;
  base_.store(base);  // an arena never moves: concurrent writers write the same value
  bytes_.store(bytes);
  uint8_t* expected = nullptr;
  if (!marks_.compare_exchange_strong(expected, static_cast<uint8_t*>(fresh))) munmap(fresh, bytes / kBlockUnit);
  return true;
}

void PoolOrigins::Set(DeviceAddress address, bool of_pool) {
  uint8_t* const marks = marks_.load(std::memory_order_acquire);
  if (address - base_.load() >= bytes_.load()) return;  // a block in managed memory
  std::atomic_ref<uint8_t> mark(marks[(address - base_.load()) / kBlockUnit]);
  // Written only where it changes: pages without a pool's mark stay unpopulated.
  if ((mark.load(std::memory_order_relaxed) != 0) != of_pool) mark.store(of_pool ? 1 : 0, std::memory_order_relaxed);
}

bool PoolOrigins::OfPool(DeviceAddress address) const {
  uint8_t* marks = marks_.load(std::memory_order_acquire);
  if (marks == nullptr || address - base_.load() >= bytes_.load()) return false;
  return std::atomic_ref<uint8_t>(marks[(address - base_.load()) / kBlockUnit]).load(std::memory_order_relaxed) != 0;
}

}  // namespace hotpack
