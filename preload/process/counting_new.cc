// operator new and delete of the preloaded libraries: malloc and free with a count per thread. Local to the library
// (the version scripts do not list them), so the program's own stay unchanged.
#include <cstdlib>
#include <new>

#include "runtime/base/heap_count.h"

namespace {

void* Allocate(std::size_t size) noexcept {
  hotpack::CountHeapAllocation();
  return std::malloc(size != 0 ? size : 1);
}

void* AllocateAligned(std::size_t size, std::align_val_t alignment) noexcept {
  hotpack::CountHeapAllocation();
  const auto align = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(align, (size + align - 1) / align * align);
}

}  // namespace

#include "preload/process/replaced_new.h"
