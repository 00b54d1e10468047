// The program that the tests of the hooks run under the preload, on the stub driver:
//   preload_client SCENARIO WAY
// Exit code 0: everything was as it should be.
#include "tests/preload/preload_client.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

Api api;

namespace {

const char* self = "";
const char* way = "";

void Basic() {
  Start();
  const CUdeviceptr a = Alloc(1000), b = Alloc(5 << 20);
  CHECK(Ours(a) && Ours(b) && a % 512 == 0 && b % 512 == 0);
  CHECK(stub_count("cuMemAlloc_v2") == 0 && stub_count("cuMemCreate") >= 3);
  CUdeviceptr base = 0;
  size_t size = 0;
  OK(api.Range(&base, &size, b + 12345));
  CHECK(base == b && size == 5 << 20);  // the block, not the arena
  OK(api.Range(nullptr, nullptr, a));
  CHECK(stub_count("cuMemGetAddressRange_v2") == 0);
  CHECK(api.Range(&base, &size, b + (64 << 20)) == CUDA_ERROR_NOT_FOUND);
  OK(api.Free(a));
  CHECK(api.Free(a) == CUDA_ERROR_INVALID_VALUE);        // a double free
  CHECK(api.Free(b + 512) == CUDA_ERROR_INVALID_VALUE);  // not the start of a block
  OK(api.Free(b));
  OK(api.Free(0));
  CHECK(stub_count("cuMemFree_v2") == 1);  // only the null pointer went to the driver
  CHECK(api.Free(0xdead000) == CUDA_ERROR_INVALID_VALUE);
  CHECK(stub_count("cuMemFree_v2") == 2);  // blocks of others are passed to the driver
  CUdeviceptr none = 77;
  CHECK(api.Alloc(&none, 0) == CUDA_ERROR_INVALID_VALUE && none == 77);
  CHECK(api.Alloc(nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(Syncs() == 0);
}

// The 32-bit first version must reach the driver as it is.
void FirstVersion() {
  Start();
  unsigned address = 0;
  OK(api.OldAlloc(&address, 4));
  CHECK(address == 0x1234 && stub_count("cuMemAlloc") == 1 && stub_count("cuMemCreate") == 0);
}

void Pitch() {
  Start();
  CUdeviceptr a = 0;
  size_t pitch = 0, size = 0;
  for (int i = 0; i < 3; ++i) {
    OK(api.AllocPitch(&a, &pitch, 1000, 64, 4));
    CHECK(Ours(a) && pitch == 1536);  // the driver's, not a guess
    OK(api.Range(nullptr, &size, a));
    CHECK(size == 1536 * 64);
    OK(api.Free(a));
  }
  CHECK(stub_count("cuMemAllocPitch_v2") == 1);  // learnt once
  CHECK(api.AllocPitch(&a, &pitch, 1000, 0, 4) == CUDA_ERROR_INVALID_VALUE);
}

void Async() {
  Start();
  CUdeviceptr a = 0, b = 0, c = 0;
  OK(api.AllocAsync(&a, 1 << 20, nullptr));
  CHECK(Ours(a));
  OK(api.FreeAsync(a, nullptr));
  OK(api.AllocAsync(&a, 1 << 20, nullptr));
  OK(api.Free(a));  // either may free the other's blocks
  CHECK(api.AllocAsync(&a, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(Syncs() == 0);
  CUstream stream = nullptr;
  OK(api.StreamCreate(&stream, 0));
  OK(api.AllocAsync(&b, 1 << 20, stream));
  OK(api.AllocAsyncPtsz(&c, 1 << 20, nullptr));
  CHECK(Ours(b) && Ours(c) && b != c);
  OK(api.FreeAsync(b, stream));
  OK(api.FreeAsyncPtsz(c, nullptr));
  CHECK(stub_count("cuMemAllocAsync") == 1 && stub_count("cuMemAllocAsync_ptsz") == 0);  // the empty request
  CHECK(stub_count("cuMemFreeAsync") == 0 && stub_count("cuMemFreeAsync_ptsz") == 0);
  CHECK(Syncs() == 0);
  CHECK(api.FreeAsync(0xdead000, stream) == CUDA_ERROR_INVALID_VALUE && stub_count("cuMemFreeAsync") == 1);
}

void Pools() {
  Start();
  CUmemoryPool pool = nullptr, own = reinterpret_cast<CUmemoryPool>(0x1002);
  OK(api.DefaultPool(&pool, 0));
  CUdeviceptr a = 0, b = 0, c = 0, d = 0;
  OK(api.AllocFromPool(&a, 4096, pool, nullptr));
  OK(api.AllocFromPoolPtsz(&b, 4096, pool, nullptr));
  CHECK(Ours(a) && Ours(b));
  OK(api.AllocFromPool(&c, 4096, own, nullptr));
  CHECK(!Ours(c) && stub_count("cuMemAllocFromPoolAsync") == 1);
  OK(api.FreeAsync(c, nullptr));
  CHECK(stub_count("cuMemFreeAsync") == 1);
  OK(api.SetPool(0, own));  // the program's own pool is now what cuMemAllocAsync takes from
  OK(api.AllocAsync(&d, 4096, nullptr));
  CHECK(!Ours(d) && stub_count("cuMemAllocAsync") == 1);
  OK(api.SetPool(0, pool));
  OK(api.AllocAsync(&d, 4096, nullptr));
  CHECK(Ours(d));
}

// A module's load is retried after hotpack has freed memory, with the options that the program gave.
void LoadAgain() {
  Start();
  OK(api.Free(Alloc(64 << 20)));
  CUmodule module = nullptr;
  CUjit_option option = CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES;
  void* value = reinterpret_cast<void*>(1024);
  OK(api.ModuleDataEx(&module, "", 1, &option, &value));
  CHECK(stub_count("cuModuleLoadDataEx") == 2 && module != nullptr && value == nullptr);
  CHECK(stub_chunks() == 0 && stub_mapped() == 0);
  value = reinterpret_cast<void*>(77);
  CHECK(api.ModuleDataEx(&module, "", 1, &option, &value) == CUDA_ERROR_OUT_OF_MEMORY);  // nothing to give back
  CHECK(stub_count("cuModuleLoadDataEx") == 3);
}

void OneStream() {
  Start();
  for (int i = 0; i < 100; ++i) {  // never the same: a plan that is taken up moves pages, which waits
    CUdeviceptr a = Alloc((1 << 20) + static_cast<size_t>(i) * 4096), b = 0;
    OK(api.Launch(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    OK(api.AllocAsync(&b, (1 << 20) + static_cast<size_t>(i) * 4096, CU_STREAM_LEGACY));
    OK(api.Free(a));
    OK(api.FreeAsync(b, CU_STREAM_LEGACY));
  }
  CHECK(Syncs() == 0);
}

// HOTPACK_FREE_SYNC=always
void AlwaysSync() {
  Start();
  OK(api.Free(Alloc(4096)));
  OK(api.Free(Alloc(4096)));
  CHECK(stub_count("cuCtxSynchronize") == 2);
}

void Threads() {
  const CUcontext context = Start();
  const CUdeviceptr a = Alloc(4096);
  std::thread([&] {
    CUcontext current = nullptr;
    OK(api.GetCurrent(&current));
    CHECK(current == nullptr);
    OK(api.Free(a));  // no context is current here
    OK(api.GetCurrent(&current));
    CHECK(current == nullptr);
  }).join();
  CHECK(api.Free(a) == CUDA_ERROR_INVALID_VALUE);  // it is gone already
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      OK(api.SetCurrent(context));
      for (int i = 0; i < 500; ++i) {
        const CUdeviceptr block = Alloc(512 * (1 + (i + t) % 7));
        CHECK(Ours(block));
        OK(api.Free(block));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Eight threads with a stream each; half of the blocks are released by whichever thread comes by. They meet only in
// relaxed exchanges, so that a thread sanitizer sees no order but hotpack's own.
void EightThreads() {
  const CUcontext context = Start();
  std::atomic<CUdeviceptr> shared[8] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      OK(api.SetCurrent(context));
      CUstream stream = nullptr;
      OK(api.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      for (int i = 0; i < 300; ++i) {
        CUdeviceptr block = 0;
        const size_t bytes = 512 * static_cast<size_t>(1 + (i * 7 + t) % 2000);
        OK(i % 3 == 0 ? api.Alloc(&block, bytes) : api.AllocAsync(&block, bytes, stream));
        CHECK(Ours(block));
        if (i % 2 == 0) block = shared[(i + t) % 8].exchange(block, std::memory_order_relaxed);
        if (block == 0) continue;
        OK(i % 5 == 0 ? api.Free(block) : api.FreeAsync(block, stream));
      }
      OK(api.StreamDestroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::atomic<CUdeviceptr>& block : shared) {
    if (block == 0) continue;
    OK(api.Free(block));
  }
}

void Contexts() {
  CUcontext primary = Start(), second = nullptr;
  const CUdeviceptr a = Alloc(4096);
  OK(api.Free(Alloc(4096)));
  CHECK(Syncs() == 0);
  OK(api.CtxCreate(&second, 0, 1));       // becomes current
  CHECK(Records() >= 1 && Waits() >= 1);  // its default stream comes after the earlier releases
  const CUdeviceptr b = Alloc(4096);
  CHECK(Ours(b) && b >> 40 != a >> 40);  // an arena of its own
  OK(api.Free(a));                       // of the other context
  CUcontext current = nullptr;
  OK(api.GetCurrent(&current));
  CHECK(current == second);
  const long chunks = stub_chunks();
  OK(api.CtxDestroy(second));
  CHECK(stub_chunks() < chunks && stub_chunks() > 0);  // its memory is back at the driver, the other's is not
  CHECK(api.Free(b) != CUDA_SUCCESS);                  // unknown, as it would be without us
  OK(api.SetCurrent(primary));
  CHECK(Alloc(4096) >> 40 == a >> 40);  // the first arena is as it was
  OK(api.ResetPrimary(0));
  CHECK(stub_chunks() == 0 && stub_mapped() == 0);
  OK(api.Retain(&primary, 0));
  OK(api.SetCurrent(primary));
  CHECK(Ours(Alloc(4096)));  // a fresh arena
  OK(api.Retain(&primary, 0));
  OK(api.ReleasePrimary(0));
  CHECK(stub_chunks() > 0);  // not the last one
  OK(api.ReleasePrimary(0));
  OK(api.ReleasePrimary(0));
  CHECK(stub_chunks() == 0 && stub_mapped() == 0);
}

// While one thread destroys a context, another asks for memory in it: that gets the driver's, and leaves no arena
// behind for a later context with the same handle.
void AskedWhileDestroyed() {
  Start();
  static CUcontext dying;
  OK(api.CtxCreate(&dying, 0, 0));
  OK(api.Free(Alloc(4096)));
  static CUdeviceptr early = 0, late = 0;
  std::thread([] {
    OK(api.SetCurrent(dying));
    early = Alloc(4096);
  }).join();
  stub_before("cuCtxDestroy_v2", [] {
    std::thread([] {
      OK(api.SetCurrent(dying));
      OK(api.Free(early));  // the driver may yet refuse
      stub_before("cuMemAddressFree", [] {
        std::thread([] {  // the arena is not to be found any more
          OK(api.SetCurrent(dying));
          late = Alloc(4096);
        })
            .join();
      });
    }).join();
  });
  OK(api.CtxDestroy(dying));
  CHECK(late != 0 && !Ours(late));
  CHECK(stub_chunks() == 0 && stub_mapped() == 0);
}

// The last user releases the primary context. Before hotpack has handled that, another thread retains a new one, which
// has the same handle, and allocates memory.
void RetainedWhileReleased() {
  Start();
  OK(api.Free(Alloc(4096)));
  static CUdeviceptr block = 0;
  static std::thread other;
  stub_before("cuDevicePrimaryCtxGetState answered", [] {
    other = std::thread([] {
      CUcontext context = nullptr;
      OK(api.Retain(&context, 0));
      OK(api.SetCurrent(context));
      block = Alloc(4096);
    });
    usleep(100'000);  // time enough for the block, if it could be had now
  });
  OK(api.ReleasePrimary(0));
  other.join();
  CHECK(Ours(block) && stub_mapped() > 0);
  OK(api.Free(block));
  OK(api.ReleasePrimary(0));
  CHECK(stub_chunks() == 0 && stub_mapped() == 0);
}

// Every way leads to one and the same function: the variant that was asked for.
void Same() {
#define SAME(member, symbol, base, version, stream, type) \
  CHECK(reinterpret_cast<void*>(api.member) == dlsym(RTLD_DEFAULT, #symbol));
  CLIENT_FUNCTIONS(SAME)
#undef SAME
}

void Inert() {
  Start();
  CUdeviceptr none = 0;
  OK(api.Launch(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  CHECK(api.Free(0xdead000) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.Alloc(&none, 0) == CUDA_ERROR_INVALID_VALUE);
  for (const char* call : {"cuMemAddressReserve", "cuMemCreate", "cuCtxGetDevice", "cuCtxSynchronize"}) {
    CHECK(stub_count(call) == 0);
  }
}

// HOTPACK=0
void Off() {
  Start();
  const CUdeviceptr a = Alloc(4096);
  CUdeviceptr b = 0;
  CUstream stream = nullptr;
  OK(api.StreamCreate(&stream, 0));
  OK(api.AllocAsync(&b, 4096, stream));
  CHECK(!Ours(a) && !Ours(b));
  OK(api.Free(a));
  OK(api.FreeAsync(b, stream));
  CHECK(stub_count("cuMemAlloc_v2") == 1 && stub_count("cuMemFree_v2") == 1 && stub_count("cuMemAllocAsync") == 1);
  CHECK(stub_count("cuCtxGetCurrent") == 0 && stub_count("cuMemCreate") == 0 && Syncs() == 0);
  if (strcmp(way, "link") != 0 && strcmp(way, "default") != 0) {
    CHECK(reinterpret_cast<void*>(api.Alloc) == stub_real("cuMemAlloc_v2"));
  }
}

// cuda-gdb sets the driver's variable before the program's first call.
void Debugged() {
  *stub_debugger_flag() = 1;
  Start();
  CHECK(!Ours(Alloc(4096)));
  CHECK(stub_count("cuMemAlloc_v2") == 1 && stub_count("cuMemCreate") == 0);
}

int Wait(pid_t pid) {
  int status = 0;
  CHECK(waitpid(pid, &status, 0) == pid);
  return status;
}

void Fork() {
  Start();
  const CUdeviceptr a = Alloc(4096);
  const pid_t child = fork();
  if (child == 0) {
    OK(api.Free(a));  // inherited: the parent keeps it
    CHECK(api.Free(0x1000) == CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr b = 0;
    OK(api.Alloc(&b, 4096));  // the stub works after fork, so a new arena is made: nothing is shared with the parent
    OK(api.Free(b));
    exit(0);
  }
  CHECK(Wait(child) == 0);
  const pid_t other = fork();
  if (other == 0) {
    execl(self, self, "basic", way, nullptr);
    _exit(1);
  }
  CHECK(Wait(other) == 0);
  OK(api.Free(a));
}

// Released when static destructors run, after the driver has gone.
struct LateFree {
  CUdeviceptr block = 0, async_block = 0;
  ~LateFree() {
    if (block == 0) return;
    stub_deinitialize();
    OK(api.Free(block));
    OK(api.FreeAsync(async_block, nullptr));
    CUdeviceptr a = 0;
    CHECK(api.Alloc(&a, 1ull << 30) == CUDA_ERROR_DEINITIALIZED);
    CHECK(api.Free(0x10'0000'0000) == CUDA_ERROR_DEINITIALIZED);
  }
} late;

void Exit() {
  Start();
  CUstream stream = nullptr;
  OK(api.StreamCreate(&stream, 0));  // so that the release waits, or tries to
  late.block = Alloc(4096);
  OK(api.AllocAsync(&late.async_block, 4096, nullptr));
}

void Die(const std::function<void()>& end) {
  Start();
  for (int i = 1; i <= 1000; ++i) OK(api.Free(Alloc(i << 10)));  // the largest is 1000 KiB
  end();
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 3);
  self = argv[0];
  way = argv[2];
  api = GetApi(way);
  Scenarios scenarios = {
      {"basic", Basic},
      {"first_version", FirstVersion},
      {"pitch", Pitch},
      {"async", Async},
      {"pools", Pools},
      {"load_again", LoadAgain},
      {"one_stream", OneStream},
      {"always_sync", AlwaysSync},
      {"threads", Threads},
      {"contexts", Contexts},
      {"eight_threads", EightThreads},
      {"asked_while_destroyed", AskedWhileDestroyed},
      {"retained_while_released", RetainedWhileReleased},
      {"same", Same},
      {"inert", Inert},
      {"off", Off},
      {"fork", Fork},
      {"debugged", Debugged},
      {"exit", Exit},
      {"end_return", [] { Die([] {}); }},
      {"end__exit", [] { Die([] { _exit(0); }); }},
      {"end_signal", [] { Die([] { raise(SIGKILL); }); }},
      {"end_exception", [] { Die([] { throw std::string("thrown"); }); }},
  };
  scenarios.merge(StreamScenarios());
  const auto scenario = scenarios.find(argv[1]);
  CHECK(scenario != scenarios.end());
  scenario->second();
  return 0;
}
