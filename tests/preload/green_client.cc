// Green contexts on the simulated device: green_client SCENARIO
#include <cuda.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "tests/preload/answers_client.h"

namespace {

constexpr size_t kBytes = 40 << 20;

CUcontext primary = nullptr;

struct Green {
  CUgreenCtx handle = nullptr;
  CUcontext context = nullptr;
};

Green NewGreen() {
  CUdevResource all = {}, part = {};
  CUdevResourceDesc description = nullptr;
  Green green;
  unsigned count = 1;
  OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  OK(cuDevSmResourceSplitByCount(&part, &count, &all, nullptr, 0, 16));
  OK(cuDevResourceGenerateDesc(&description, &part, 1));
  OK(cuGreenCtxCreate(&green.handle, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  OK(cuCtxFromGreenCtx(&green.context, green.handle));
  return green;
}

void Within(CUcontext context, const std::function<void()>& work) {
  CUcontext popped = nullptr;
  OK(cuCtxPushCurrent(context));
  work();
  OK(cuCtxPopCurrent(&popped));
}

size_t FreeBytes() {
  size_t free = 0, total = 0;
  OK(cuMemGetInfo(&free, &total));
  return free;
}

CUdeviceptr Alloc(size_t bytes = kBytes) {
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, bytes));
  return block;
}

CUdeviceptr AllocAsync(CUstream stream) {
  CUdeviceptr block = 0;
  OK(cuMemAllocAsync(&block, kBytes, stream));
  return block;
}

void Use(CUdeviceptr block, CUstream stream) { OK(cuMemsetD8Async(block, 1, kBytes, stream)); }

CUstream NewStream() {
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

// Many, one after another. Each one's memory outlives it, and is all back in the end.
void Memory() {
  const size_t before = FreeBytes();
  for (int round = 0; round < 100; ++round) {
    const Green green = NewGreen();
    CUdeviceptr block = 0, small = 0;
    Within(green.context, [&] {
      block = Alloc();
      small = Alloc(4096);
      Use(block, nullptr);
      OK(cuMemFree(small));
    });
    OK(cuGreenCtxDestroy(green.handle));
    Use(block, nullptr);
    CUcontext owner = nullptr;
    OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, block));
    CHECK(owner == primary);
    OK(cuMemFree(block));
  }
  OK(cuCtxSynchronize());
  CHECK(FreeBytes() == before);
}

// Memory that was used on a green context's stream goes to another stream, before its end and after.
void OwnStreams() {
  for (int round = 0; round < 40; ++round) {
    const Green green = NewGreen();
    CUstream its = nullptr;
    OK(cuGreenCtxStreamCreate(&its, green.handle, CU_STREAM_NON_BLOCKING, 0));
    const CUstream other = NewStream();
    CUdeviceptr block = round % 2 == 0 ? AllocAsync(its) : Alloc();
    Use(block, its);
    OK(round % 2 == 0 ? cuMemFreeAsync(block, its) : cuMemFree(block));
    if (round % 4 < 2) {
      block = AllocAsync(other);
      Use(block, other);
      OK(cuMemFreeAsync(block, other));
      block = AllocAsync(its);
      Use(block, its);
      OK(cuMemFreeAsync(block, its));
    }
    if (round % 3 == 0) OK(cuStreamDestroy(its));
    OK(cuGreenCtxDestroy(green.handle));
    block = AllocAsync(other);
    Use(block, other);
    OK(cuMemFreeAsync(block, other));
    OK(cuStreamDestroy(other));
  }
}

// The default streams of the primary context and of green ones are as many streams.
void DefaultStreams() {
  const Green first = NewGreen(), second = NewGreen();
  for (int round = 0; round < 20; ++round) {
    for (const CUcontext context : {primary, first.context, second.context, first.context}) {
      Within(context, [&] {
        const CUdeviceptr block = round % 2 == 0 ? AllocAsync(nullptr) : Alloc();
        Use(block, nullptr);
        OK(round % 2 == 0 ? cuMemFreeAsync(block, nullptr) : cuMemFree(block));
      });
    }
  }
  OK(cuGreenCtxDestroy(first.handle));
  const CUdeviceptr block = Alloc();
  Use(block, nullptr);
  OK(cuMemFree(block));
  OK(cuGreenCtxDestroy(second.handle));
}

// A primary context that ends with its last green one: all memory is back.
void Last() {
  size_t before = 0;
  for (int round = 0; round < 10; ++round) {
    const size_t free = FreeBytes();
    if (round == 0) before = free;
    CHECK(free == before);
    const Green green = NewGreen();
    Use(Alloc(), nullptr);
    OK(cuDevicePrimaryCtxRelease(0));
    Within(green.context, [&] { Use(Alloc(), nullptr); });
    OK(cuGreenCtxDestroy(green.handle));
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    OK(cuCtxSetCurrent(primary));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&primary, 0));
  OK(cuCtxSetCurrent(primary));
  const std::pair<const char*, void (*)()> kScenarios[] = {
      {"memory", Memory}, {"own_streams", OwnStreams}, {"default_streams", DefaultStreams}, {"last", Last}};
  for (const auto& [name, run] : kScenarios) {
    if (std::string(argv[1]) != name) continue;
    run();
    return 0;
  }
  return 2;
}
