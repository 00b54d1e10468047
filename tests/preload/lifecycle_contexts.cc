// Devices and contexts that come and go:
//   lifecycle_contexts SCENARIO
// Exit code 0: everything was as it should be. The simulated device's checker reports the rest.
#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "tests/preload/lifecycle.h"

namespace {

constexpr size_t kBlock = 300'000;

// SIMGPU_DEVICES=2. Each device has an arena of its own, and a block is released from wherever.
void Devices() {
  int count = 0;
  OK(cuInit(0));
  OK(cuDeviceGetCount(&count));
  CHECK(count == 2);
  CUcontext contexts[2] = {Primary(0), Primary(1)};
  std::vector<CUdeviceptr> blocks[2];
  for (int i = 0; i < 40; ++i) {
    for (int device = 0; device < 2; ++device) {
      OK(cuCtxSetCurrent(contexts[device]));
      blocks[device].push_back(Alloc(kBlock));
      CHECK(InArena(blocks[device].back()));
      Use(blocks[device].back(), kBlock);
      int ordinal = -1;
      OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, blocks[device].back()));
      CHECK(ordinal == device);
    }
  }
  OK(cuCtxSetCurrent(contexts[0]));
  Job();
  std::thread other([&] {  // no context at all
    for (CUdeviceptr block : blocks[1]) OK(cuMemFree(block));
  });
  other.join();
  OK(cuCtxSetCurrent(contexts[1]));
  Job();
  for (CUdeviceptr block : blocks[0]) OK(cuMemFree(block));
}

// Two devices, a thread each, at the same time.
void DevicesInThreads() {
  std::vector<std::thread> threads;
  for (int device = 0; device < 2; ++device) {
    threads.emplace_back([device] {
      Primary(device);
      Job(150);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void Contexts() {
  CUcontext primary = Primary(0), second = nullptr, third = nullptr;
  const CUdeviceptr a = Alloc(kBlock);
  OK(cuCtxCreate(&second, nullptr, 0, 0));
  const CUdeviceptr b = Alloc(kBlock);
  OK(cuCtxCreate(&third, nullptr, 0, 0));
  const CUdeviceptr c = Alloc(kBlock);
  CHECK(InArena(a) && InArena(b) && InArena(c));
  CHECK(a >> 33 != b >> 33 && b >> 33 != c >> 33 && a >> 33 != c >> 33);  // reservations of their own
  for (CUdeviceptr block : {a, b, c}) Use(block, kBlock);
  OK(cuMemFree(a));  // of another context than the current one
  OK(cuCtxSetCurrent(second));
  Job();
  OK(cuCtxDestroy(third));  // with c live
  OK(cuMemFree(b));
  Job();
  OK(cuCtxDestroy(second));
  OK(cuCtxSetCurrent(primary));
  Job();
}

// Everything of a context is back at the driver, and the context can be used as if it were new.
void UseAgainAfter(const std::function<void()>& end) {
  CUcontext context = Primary(0);
  const size_t before = FreeBytes();
  for (int round = 0; round < 5; ++round) {
    const CUdeviceptr live = Alloc(5 << 20);
    Use(live, 5 << 20);
    CHECK(InArena(live));
    Job();
    CHECK(FreeBytes() < before);
    end();
    context = Primary(0);
    CHECK(FreeBytes() == before);
  }
  OK(cuCtxSetCurrent(context));
  Job();
}

void Reset() {
  UseAgainAfter([] { OK(cuDevicePrimaryCtxReset(0)); });
}

void Release() {
  UseAgainAfter([] {
    CUcontext context = nullptr;
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    const CUdeviceptr block = Alloc(kBlock);
    OK(cuDevicePrimaryCtxRelease(0));
    Use(block, kBlock);  // that was not the last release
    OK(cuMemFree(block));
    OK(cuDevicePrimaryCtxRelease(0));
  });
}

// Contexts end while their blocks live, by another thread, while a third asks for memory in them.
void DestroyLive() {
  Primary(0);
  const size_t before = FreeBytes();
  for (int round = 0; round < 60; ++round) {
    CUcontext context = nullptr;
    OK(cuCtxCreate(&context, nullptr, 0, 0));
    const CUdeviceptr live = Alloc(kBlock);
    Use(live, kBlock);
    std::atomic<int> asked{0};
    std::thread asks([&] {
      if (cuCtxSetCurrent(context) != CUDA_SUCCESS) asked = 1'000'000;
      for (int i = 0; i < 2000 && asked < 1'000'000; ++i) {
        CUdeviceptr block = 0;
        const CUresult result = cuMemAlloc(&block, 1000 + static_cast<size_t>(i % 50) * 40'000);
        ++asked;
        if (result != CUDA_SUCCESS) break;  // the end; earlier blocks may be gone already
      }
    });
    std::thread destroys([&] {
      while (asked.load() < round % 20) std::this_thread::yield();
      OK(cuCtxDestroy(context));
    });
    destroys.join();
    asks.join();
    CUcontext popped = nullptr;
    OK(cuCtxPopCurrent(&popped));
    Primary(0);
    OK(cuDevicePrimaryCtxRelease(0));
  }
  CHECK(FreeBytes() == before);
  Job();
}

// Many contexts, one after another: no thread stays behind, and no device memory.
void ManyContexts() {
  Primary(0);
  const size_t before = FreeBytes();
  for (int round = 0; round < 150; ++round) {
    CUcontext context = nullptr;
    OK(cuCtxCreate(&context, nullptr, 0, 0));
    Job(30);
    OK(cuCtxDestroy(context));
  }
  CHECK(FreeBytes() == before);
  for (int i = 0; i < 500 && CountThreads() > 1; ++i) usleep(10'000);
  CHECK(CountThreads() == 1);
}

// The driver does not destroy a primary context this way: its blocks stay.
void DestroyRefused() {
  CUcontext primary = Primary(0);
  const CUdeviceptr block = Alloc(kBlock);
  CHECK(cuCtxDestroy(primary) != CUDA_SUCCESS);
  Use(block, kBlock);
  Job();
  const CUdeviceptr more = Alloc(kBlock);
  CHECK(InArena(more));
  OK(cuMemFree(more));
  OK(cuMemFree(block));
}

// Two threads share the primary context by count; each release of the last one may fall into the other's new retain.
void RetainAndRelease() {
  OK(cuInit(0));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 150; ++i) {
        CUcontext context = nullptr;
        OK(cuDevicePrimaryCtxRetain(&context, 0));
        OK(cuCtxSetCurrent(context));
        for (int k = 0; k < 3; ++k) {
          const CUdeviceptr block = Alloc(kBlock);
          Use(block, kBlock);
          OK(cuMemFree(block));
        }
        OK(cuCtxSetCurrent(nullptr));
        OK(cuDevicePrimaryCtxRelease(0));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// One thread's release is the last one; another retains the context as soon as the driver has let it go, which is
// before the first thread can know. SIMGPU_DELAY makes that time longer in some of the rounds.
void RetainAtTheLastRelease() {
  for (int round = 0; round < 150; ++round) {
    Primary(0);
    const CUdeviceptr block = Alloc(kBlock);
    Use(block, kBlock);
    OK(cuMemFree(block));
    std::thread other([] {
      unsigned flags = 0;
      for (int active = 1; active != 0;) OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
      Primary(0);
      const CUdeviceptr later = Alloc(kBlock);
      CHECK(InArena(later));
      Use(later, kBlock);
      OK(cuMemFree(later));
      OK(cuDevicePrimaryCtxRelease(0));
    });
    OK(cuDevicePrimaryCtxRelease(0));
    other.join();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void()>> scenarios = {
      {"devices", Devices},
      {"devices_in_threads", DevicesInThreads},
      {"contexts", Contexts},
      {"reset", Reset},
      {"release", Release},
      {"destroy_live", DestroyLive},
      {"many_contexts", ManyContexts},
      {"destroy_refused", DestroyRefused},
      {"retain_and_release", RetainAndRelease},
      {"retain_at_the_last_release", RetainAtTheLastRelease},
  };
  const auto scenario = scenarios.find(argc > 1 ? argv[1] : "");
  CHECK(scenario != scenarios.end());
  scenario->second();
  return 0;
}
