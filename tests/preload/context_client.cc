// Threads without a current context, on the simulated device. Linked with libhotpack.so: context_client SCENARIO
#include <cstring>
#include <thread>

#include "hotpack.h"
#include "tests/preload/answers_client.h"

namespace {

size_t FreeBytes(CUcontext context) {
  size_t free = 0, total = 0;
  OK(cuCtxPushCurrent(context));
  OK(cuMemGetInfo(&free, &total));
  CUcontext popped = nullptr;
  OK(cuCtxPopCurrent(&popped));
  return free;
}

// Requests a block with a context, calls release(block) in a thread without one. Returns the free bytes before.
template <typename Release>
size_t ReleasedElsewhere(CUcontext context, Release release) {
  const size_t before = FreeBytes(context);
  void* block = nullptr;
  OK(cuCtxSetCurrent(context));
  OK(hotpack_malloc(&block, 64 << 20, nullptr));
  CHECK(FreeBytes(context) < before);
  std::thread([&] { release(block); }).join();
  return before;
}

// HOTPACK=0: the driver serves the request. A thread without a context releases it.
void DriversBlock(CUcontext context) {
  ReleasedElsewhere(context, [](void* block) {
    OK(hotpack_free(block, nullptr));
    CUcontext current = nullptr;
    OK(cuCtxGetCurrent(&current));
    CHECK(current == nullptr);
  });
  OK(cuCtxSynchronize());
  hotpack_trim();
}

// The arena's memory goes back to the driver from a thread without a context.
void Trim(CUcontext context) {
  const size_t before = ReleasedElsewhere(context, [](void* block) {
    OK(hotpack_free(block, nullptr));
    CHECK(hotpack_trim() > 0);
  });
  CHECK(FreeBytes(context) == before);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  CUcontext context = nullptr;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  strcmp(argv[1], "drivers_block") == 0 ? DriversBlock(context) : Trim(context);
  return 0;
}
