// operator new of a variant of the preloaded library, in place of preload/process/counting_new.cc: of all calls in the
// process, on any thread, the HOTPACK_TEST_FAIL_NEW-th fails.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "runtime/base/heap_count.h"

namespace {

constinit std::atomic<long> calls{0};

bool Fails() {
  hotpack::CountHeapAllocation();
  const char* text = getenv("HOTPACK_TEST_FAIL_NEW");
  if (text == nullptr || ++calls != atol(text)) return false;
  constexpr char kLine[] = "operator new failed\n";
  return write(STDERR_FILENO, kLine, sizeof(kLine) - 1) > 0;
}

void* Allocate(std::size_t size) noexcept { return Fails() ? nullptr : std::malloc(size != 0 ? size : 1); }

void* AllocateAligned(std::size_t size, std::align_val_t alignment) noexcept {
  const auto align = static_cast<std::size_t>(alignment);
  return Fails() ? nullptr : std::aligned_alloc(align, (size + align - 1) / align * align);
}

}  // namespace

#include "preload/process/replaced_new.h"
