// What memory of hotpack costs in virtual time, on streams of PyTorch's kind. torch_time_client MODE
// Work is a memset at 1 GB/s, so a MiB takes about a millisecond. Calls take nothing.
#include <cuda.h>

#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "preload/torch/hotpack_torch.h"
#include "simgpu/checker.h"
#include "tests/preload/client_api.h"

namespace {

constexpr size_t kMiB = 1 << 20;
constexpr double kMs = 1.048576;  // of a MiB
constexpr int kSteps = 60;

CUstream NewStream() {
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

CUevent NewEvent(unsigned flags = CU_EVENT_DEFAULT) {
  CUevent event = nullptr;
  OK(cuEventCreate(&event, flags));
  return event;
}

void* Allocate(size_t bytes, CUstream stream) { return hotpack_torch_malloc(static_cast<ssize_t>(bytes), 0, stream); }
void Free(void* block, size_t bytes, CUstream stream) {
  hotpack_torch_free(block, static_cast<ssize_t>(bytes), 0, stream);
}
void Use(void* block, size_t bytes, CUstream stream) {
  OK(cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(block), 0, bytes, stream));
}

void WaitFor(CUstream stream, CUstream other) {
  static const CUevent event = NewEvent(CU_EVENT_DISABLE_TIMING);
  OK(cuEventRecord(event, other));
  OK(cuStreamWaitEvent(stream, event, 0));
}

// Prints the longest of the later steps.
void Print(const std::vector<CUevent>& begin, const std::vector<CUevent>& end) {
  float longest = 0;
  for (size_t i = begin.size() / 2; i < begin.size(); ++i) {
    float ms = 0;
    OK(cuEventElapsedTime(&ms, begin[i], end[i]));
    if (ms > longest) longest = ms;
  }
  printf("ms %.3f\n", longest / kMs);
}

// The side stream uses a block of the main stream once, then has much other work. The main stream goes on with memory
// of that size. Its own work is 3 units, and it may wait for the use, 1 unit.
void Recorded() {
  const CUstream main = NewStream(), side = NewStream();
  CUdeviceptr other = 0;
  OK(cuMemAlloc(&other, kMiB));
  std::vector<CUevent> begin, end;
  for (int step = 0; step < kSteps; ++step) {
    begin.push_back(NewEvent());
    end.push_back(NewEvent());
    OK(cuEventRecord(begin.back(), main));
    void* block = Allocate(kMiB, main);
    Use(block, kMiB, main);
    WaitFor(side, main);
    Use(block, kMiB, side);
    hotpack_torch_record_stream(block, side);
    Free(block, kMiB, main);
    for (int i = 0; i < 20; ++i) OK(cuMemsetD8Async(other, 0, kMiB, side));
    void* next = Allocate(kMiB, main);
    for (int i = 0; i < 2; ++i) Use(next, kMiB, main);
    Free(next, kMiB, main);
    OK(cuEventRecord(end.back(), main));
    OK(cuCtxSynchronize());
  }
  Print(begin, end);
}

// A copy stream fetches the next small batch while the main stream computes, 8 units each: without overlap a step takes
// 16. The batch is released early, so the lowest placements put activations there.
void Prefetch() {
  const CUstream main = NewStream(), copies = NewStream();
  std::vector<CUevent> begin, end;
  constexpr size_t kActivation = 32 * kMiB;
  constexpr int kLayers = 4;
  const auto fetch = [&] {
    void* batch = Allocate(kMiB, copies);
    for (int i = 0; i < 8; ++i) Use(batch, kMiB, copies);
    return batch;
  };
  void* next = fetch();
  for (int step = 0; step < kSteps; ++step) {
    begin.push_back(NewEvent());
    end.push_back(NewEvent());
    OK(cuEventRecord(begin.back(), main));
    WaitFor(main, copies);
    void* batch = next;
    hotpack_torch_record_stream(batch, main);
    next = fetch();
    void* activations[kLayers];
    for (int layer = 0; layer < kLayers; ++layer) {
      const size_t bytes = kActivation + (layer + 1) * kMiB / 2;
      activations[layer] = Allocate(bytes, main);
      for (int i = 0; i < 2; ++i) Use(activations[layer], kMiB, main);
      if (layer == 0) Free(batch, kMiB, copies);
    }
    for (int layer = 0; layer < kLayers; ++layer) Free(activations[layer], kActivation + (layer + 1) * kMiB / 2, main);
    OK(cuEventRecord(end.back(), main));
  }
  OK(cuCtxSynchronize());
  Print(begin, end);
}

// A stream has pending work when another one asks for memory that it released, and the host has waited since. The
// default pool must not insert a wait for that work (CUDA runtime API, pool attributes).
void WithoutInternalDependencies() {
  const CUstream first = NewStream(), second = NewStream();
  CUmemoryPool pool = nullptr;
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  int no = 0;
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &no));
  CUdeviceptr pending = 0, block = 0;
  OK(cuMemAlloc(&pending, kMiB));
  OK(cuMemsetD8Async(pending, 0, kMiB, second));
  OK(cuMemAllocAsync(&block, 64 * kMiB, first));
  OK(cuMemsetD8Async(block, 0, kMiB, first));
  OK(cuMemFreeAsync(block, first));
  OK(cuCtxSynchronize());
  for (int i = 0; i < 20; ++i) OK(cuMemsetD8Async(pending, 0, kMiB, first));
  const CUevent begin = NewEvent(), end = NewEvent();
  OK(cuEventRecord(begin, second));
  OK(cuMemAllocAsync(&block, 64 * kMiB, second));
  OK(cuMemsetD8Async(block, 0, kMiB, second));
  OK(cuEventRecord(end, second));
  OK(cuCtxSynchronize());
  Print({{begin}}, {{end}});
}

// A stream released memory, and the host has waited since. Then the stream gets work that ends only after an answer: 20
// units. The answer's stream asks for that memory, and must not wait for that work. `used`: it was used before.
// `between`: so many blocks of another stream are released meanwhile. `torch`: by PyTorch's functions, or the driver's.
void PostedBeforeReuse(bool used, int between, bool torch) {
  const CUstream receives = NewStream(), answers = NewStream(), main = NewStream(), clock = NewStream();
  const auto allocate = [torch](size_t bytes, CUstream stream) {
    CUdeviceptr block = 0;
    if (torch) return Allocate(bytes, stream);
    OK(cuMemAllocAsync(&block, bytes, stream));
    return reinterpret_cast<void*>(block);
  };
  const auto release = [torch](void* block, size_t bytes, CUstream stream) {
    if (torch) return Free(block, bytes, stream);
    OK(cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(block), stream));
  };
  void* const pending = allocate(kMiB, main);
  Use(pending, kMiB, main);
  Use(pending, kMiB, clock);
  if (used) Use(allocate(kMiB, answers), kMiB, answers);
  void* const block = allocate(64 * kMiB, receives);
  Use(block, kMiB, receives);
  release(block, 64 * kMiB, receives);
  OK(cuCtxSynchronize());
  for (int i = 0; i < 20; ++i) Use(pending, kMiB, receives);
  for (int i = 0; i < between; ++i) {
    void* const other = allocate(512, main);
    Use(other, 512, main);
    release(other, 512, main);
  }
  const CUevent begin = NewEvent(), end = NewEvent();
  OK(cuEventRecord(begin, clock));  // on the stream itself it would be its first use
  void* const again = allocate(64 * kMiB, answers);
  CHECK(again == block);
  Use(again, kMiB, answers);
  OK(cuEventRecord(end, answers));
  OK(cuCtxSynchronize());
  Print({begin}, {end});
}

// A side stream has work that ends only long after: it stands for a receive that was posted before the request that it
// answers, and the main stream submits that request last. Meanwhile four shapes of step take turns, so free pages are
// wanted elsewhere. The device is nearly empty. Prints the time of the main thread.
void Posted() {
  const CUstream main = NewStream(), side = NewStream();
  CUdeviceptr other = 0;
  OK(cuMemAlloc(&other, 512 * kMiB));
  Free(Allocate(kMiB, side), kMiB, side);
  const auto step = [main](size_t k) {
    std::vector<std::pair<void*, size_t>> blocks;
    for (size_t i = 0; i < 14; ++i) {
      const size_t bytes = (i * (k + 3) % 13 + 1) * (k + 1) * kMiB;
      blocks.push_back({Allocate(bytes, main), bytes});
    }
    for (size_t i = 0; i < 14; i += 2) Free(blocks[i].first, blocks[i].second, main);
    const size_t last = (20 + 7 * k) * kMiB;
    Free(Allocate(last, main), last, main);
    for (size_t i = 1; i < 14; i += 2) Free(blocks[i].first, blocks[i].second, main);
  };
  for (size_t i = 0; i < 10; ++i) step(0);
  OK(cuCtxSynchronize());
  for (int i = 0; i < 2000; ++i) OK(cuMemsetD8Async(other, 0, 512 * kMiB, side));  // 1000 s
  const uint64_t begin = simgpuTimeHost();
  for (size_t i = 10; i < 200; ++i) step(i / 10 % 4);
  printf("ms %.3f\n", static_cast<double>(simgpuTimeHost() - begin) / 1e6);
}

constexpr std::pair<const char*, void (*)()> kModes[] = {
    {"recorded", Recorded},
    {"prefetch", Prefetch},
    {"pool", WithoutInternalDependencies},
    {"posted", Posted},
    {"reuse", [] { PostedBeforeReuse(true, 0, true); }},
    {"first", [] { PostedBeforeReuse(false, 0, true); }},
    {"later", [] { PostedBeforeReuse(true, 300, true); }},
    {"driver_reuse", [] { PostedBeforeReuse(true, 0, false); }},
    {"driver_first", [] { PostedBeforeReuse(false, 0, false); }},
    {"driver_later", [] { PostedBeforeReuse(true, 300, false); }},
};

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 2);
  OK(cuInit(0));
  CUcontext context = nullptr;
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  hotpack_torch_init(1);
  for (const auto& [name, run] : kModes) {
    if (strcmp(argv[1], name) == 0) run();
  }
  printf("done\n");
}
