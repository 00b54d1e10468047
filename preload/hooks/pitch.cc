#include "preload/hooks/pitch.h"

#include <pthread.h>

#include <mutex>
#include <new>

namespace hotpack {
namespace {

struct Known {
  size_t width;
  unsigned int element;
  size_t pitch;  // 0: free
};

constexpr size_t kEntries = 1024;
constinit Known cache[kEntries] = {};
constinit std::mutex mutex;  // never held across a driver call

Known& Slot(size_t width, unsigned int element) {
  const size_t hash = (width * 31 + element) * 0x9e3779b97f4a7c15ull;
  return cache[hash >> 54];
}
static_assert(kEntries == 1u << (64 - 54));

// In a forked child a lost thread may hold the mutex. That thread may also have been writing the table, which is only a
// cache, so both are reset.
void ResetAfterFork() {
  new (&mutex) std::mutex;
  for (Known& known : cache) known = {};
}

__attribute__((constructor)) void RegisterFork() { pthread_atfork(nullptr, nullptr, ResetAfterFork); }

}  // namespace

bool LearnPitch(AllocPitch allocate, FreeMemory free, size_t width, unsigned int element, size_t* pitch) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    const Known& known = Slot(width, element);
    if (known.pitch != 0 && known.width == width && known.element == element) {
      *pitch = known.pitch;
      return true;
    }
  }
  CUdeviceptr row = 0;
  size_t learnt = 0;
  if (allocate(&row, &learnt, width, 1, element) != CUDA_SUCCESS || learnt < width) return false;
  free(row);
  std::lock_guard<std::mutex> lock(mutex);
  Slot(width, element) = {width, element, learnt};
  *pitch = learnt;
  return true;
}

}  // namespace hotpack
