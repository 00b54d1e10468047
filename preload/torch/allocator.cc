// The functions that PyTorch calls for each tensor.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <vector>

#include "preload/torch/driver.h"
#include "preload/torch/error.h"
#include "preload/torch/figures.h"
#include "preload/torch/graph_pools.h"
#include "preload/torch/held_blocks.h"
#include "preload/torch/history.h"
#include "preload/torch/hotpack_torch.h"
#include "runtime/include/hotpack.h"

namespace hotpack_torch {
namespace {

// Tells the simulated device's checker which blocks the program got, since nothing else knows them. (A pool's blocks
// are parts of a driver block, which the checker knows. simgpu/checker.h)
struct Checker {
  void (*given)(uint64_t address, size_t bytes, void* stream) = nullptr;
  void (*returned)(uint64_t address, void* stream) = nullptr;
};

const Checker& GetChecker() {
  static const Checker checker = [] {
    Checker found;
    found.given = reinterpret_cast<decltype(found.given)>(dlsym(RTLD_DEFAULT, "simgpuBlockGiven"));
    found.returned = reinterpret_cast<decltype(found.returned)>(dlsym(RTLD_DEFAULT, "simgpuBlockReturned"));
    if (void* driver = found.given == nullptr ? dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) : nullptr) {
      found.given = reinterpret_cast<decltype(found.given)>(dlsym(driver, "simgpuBlockGiven"));
      found.returned = reinterpret_cast<decltype(found.returned)>(dlsym(driver, "simgpuBlockReturned"));
    }
    return found;
  }();
  return checker;
}

// Devices copy directly between each other's memory where they can. For virtual memory the driver does not enable that
// by itself.
void NoteDevice(int device) {
  static std::atomic<uint64_t> served{0};
  const uint64_t bit = uint64_t{1} << device;
  if ((served.load(std::memory_order_relaxed) & bit) != 0) return;
  const uint64_t others = served.fetch_or(bit);
  const Driver* driver = GetDriver();
  for (int other = 0; other < kDevices && driver != nullptr; ++other) {
    int possible = 0;
    if (other == device || (others >> other & 1) == 0) continue;
    if (driver->DeviceCanAccessPeer(&possible, other, device) == CUDA_SUCCESS && possible != 0)
      hotpack_allow_peer(device, other);
    if (driver->DeviceCanAccessPeer(&possible, device, other) == CUDA_SUCCESS && possible != 0)
      hotpack_allow_peer(other, device);
  }
}

void* Allocate(size_t bytes, int device, void* stream) {
  void* pointer = nullptr;
  const DeviceScope scope(device);
  if (!scope.ok()) return nullptr;
  if (Pools().Allocate(device, bytes, stream, &pointer)) return pointer;
  if (hotpack_malloc(&pointer, bytes, stream) != CUDA_SUCCESS) return nullptr;
  NoteDevice(device);
  if (const Checker& checker = GetChecker(); checker.given != nullptr) {
    checker.given(reinterpret_cast<uint64_t>(pointer), bytes, stream);
  }
  return pointer;
}

void Release(void* pointer, int device, void* stream) {
  if (Pools().Free(pointer, stream)) return;
  if (const Checker& checker = GetChecker(); checker.returned != nullptr) {
    checker.returned(reinterpret_cast<uint64_t>(pointer), stream);
  }
  // If the device cannot be made current any more (the end of the process), the release still works.
  const DeviceScope scope(device);
  hotpack_free_pooled(pointer, stream);  // PyTorch's contract: the memory returns to the pool of its stream
}

}  // namespace
}  // namespace hotpack_torch

using hotpack_torch::FiguresOf;
using hotpack_torch::Pools;
using hotpack_torch::TheHistory;

extern "C" {

void* hotpack_torch_malloc(ssize_t size, int device, void* stream) {
  if (size <= 0) return nullptr;
  const auto bytes = static_cast<size_t>(size);
  hotpack_torch::Figures* figures = FiguresOf(device);
  void* pointer = figures != nullptr ? hotpack_torch::Allocate(bytes, device, stream) : nullptr;
  if (pointer == nullptr) {
    if (figures != nullptr) figures->OutOfMemory();
    if (TheHistory().on()) {
      const auto* free = reinterpret_cast<const void*>(hotpack_torch::FreeBytes(device));
      TheHistory().Note(HOTPACK_TORCH_OOM, device, free, bytes, stream);
    }
    hotpack_torch::ThrowOutOfMemory(bytes, device);
  }
  figures->Allocated(bytes);
  if (TheHistory().on()) TheHistory().Note(HOTPACK_TORCH_ALLOC, device, pointer, bytes, stream);
  return pointer;
}

// Never throws: PyTorch frees in destructors.
void hotpack_torch_free(void* pointer, ssize_t size, int device, void* stream) try {
  if (pointer == nullptr) return;
  const auto bytes = static_cast<size_t>(size < 0 ? 0 : size);
  if (hotpack_torch::Held().Defer(pointer, {bytes, device, stream})) return;
  if (Pools().Defer(pointer, bytes, device, stream)) return;
  if (hotpack_torch::Figures* figures = FiguresOf(device)) figures->Freed(bytes);
  if (TheHistory().on()) TheHistory().Note(HOTPACK_TORCH_FREE, device, pointer, bytes, stream);
  hotpack_torch::Release(pointer, device, stream);
} catch (...) {
  // Out of host memory for the lists: the block stays live. It leaks, but nothing worse happens.
}

void hotpack_torch_init(int) { hotpack_keep_streams(); }

void hotpack_torch_reset(void) { hotpack_trim(); }

void hotpack_torch_memory_fraction(double fraction, int device) {
  hotpack_torch::Figures* figures = FiguresOf(device);
  const size_t total = hotpack_torch::TotalBytes(device);
  if (figures == nullptr || total == 0 || !(fraction >= 0 && fraction <= 1)) return;
  figures->SetFraction(fraction);
  hotpack_set_limit(
      device, fraction == 1 ? UINT64_MAX : static_cast<uint64_t>(std::floor(fraction * static_cast<double>(total))));
}

// Returns the start of the block that contains `pointer`. (PyTorch needs it to share memory with other processes, which
// arenas do not support.) O(blocks).
void* hotpack_torch_base_alloc(void* pointer, size_t* size) try {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  size_t bytes = 0;
  uint64_t base = address;
  if (!Pools().Find(pointer, &bytes)) {
    for (int device = 0; device < hotpack_torch::kDevices && bytes == 0; ++device) {
      std::vector<hotpack_extent> blocks(hotpack_list_blocks(device, nullptr, 0));
      blocks.resize(std::min(blocks.size(), hotpack_list_blocks(device, blocks.data(), blocks.size())));
      for (const hotpack_extent& block : blocks) {
        if (address < block.address || address - block.address >= block.bytes) continue;
        base = block.address;
        bytes = block.bytes;
      }
    }
  }
  if (size != nullptr) *size = bytes;
  return reinterpret_cast<void*>(base);
} catch (...) {
  return pointer;
}

void hotpack_torch_record_stream(void* pointer, void* stream) {
  if (pointer == nullptr || Pools().RecordUse(pointer)) return;
  hotpack_record_use(pointer, stream);
}

}  // extern "C"
