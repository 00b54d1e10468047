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

// Contexts that come and go, each with a block of the driver's that was released to its stream's pool.
void Pools(CUcontext context) {
  OK(cuCtxSetCurrent(context));
  const size_t before = FreeBytes(context);
  for (int round = 0; round < 5; ++round) {
    CUcontext own = nullptr;
    void* block = nullptr;
    CUstream stream = nullptr;
    OK(cuCtxCreate(&own, nullptr, 0, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(hotpack_malloc(&block, 64 << 20, stream));
    OK(hotpack_free_pooled(block, stream));
    OK(cuCtxDestroy(own));
  }
  CHECK(FreeBytes(context) == before);
}

// Copies between two devices that cannot access each other's memory, without hooks. Each device has a block in its
// arena, if there is one, and a block that the driver serves because the arena has no memory for it.
void Copies(CUcontext first) {
  CUcontext contexts[2] = {first, nullptr};
  OK(cuDevicePrimaryCtxRetain(&contexts[1], 1));
  void* blocks[2][2] = {};
  for (int device = 0; device < 2; ++device) {
    size_t free = 0, total = 0;
    OK(cuCtxSetCurrent(contexts[device]));
    OK(cuMemGetInfo(&free, &total));
    OK(hotpack_malloc(&blocks[device][0], free / 100 * 85, nullptr));
    OK(hotpack_malloc(&blocks[device][1], free / 100 * 8, nullptr));
  }
  for (int device = 0; device < 2; ++device) {
    OK(cuCtxSetCurrent(contexts[device]));
    for (void* from : blocks[0]) {
      for (void* to : blocks[1]) {
        OK(cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), 1 << 20, nullptr));
        OK(cuMemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(from), reinterpret_cast<CUdeviceptr>(to), 1 << 20, nullptr));
      }
    }
    OK(cuCtxSynchronize());
  }
  for (int device = 0; device < 2; ++device) {
    OK(cuCtxSetCurrent(contexts[device]));
    for (void* block : blocks[device]) OK(hotpack_free_pooled(block, nullptr));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  CUcontext context = nullptr;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  if (strcmp(argv[1], "drivers_block") == 0) DriversBlock(context);
  if (strcmp(argv[1], "trim") == 0) Trim(context);
  if (strcmp(argv[1], "pools") == 0) Pools(context);
  if (strcmp(argv[1], "copies") == 0) Copies(context);
  return 0;
}
