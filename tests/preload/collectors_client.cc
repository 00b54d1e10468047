// The collectors' records with several contexts, processes and threads: collectors_client SCENARIO
// On the driver API, for collectors_test.cc.
#include <atomic>
#include <thread>

#include "preload/collect/collector_host.h"
#include "tests/preload/lifecycle.h"

namespace {

constexpr char kPtx[] = R"ptx(
.version 7.0
.target sm_70
.address_size 64
.visible .entry two(.param .u64 a, .param .u64 b) { ret; }
)ptx";

int Push(const char* name) {
  static const auto push = reinterpret_cast<int (*)(const char*)>(dlsym(RTLD_DEFAULT, "hotpack_range_push"));
  CHECK(push != nullptr);
  return push(name);
}
int Pop() {
  static const auto pop = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "hotpack_range_pop"));
  CHECK(pop != nullptr);
  return pop();
}

// Of the current context.
CUfunction Two() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  OK(cuModuleLoadData(&module, kPtx));
  OK(cuModuleGetFunction(&function, module, "two"));
  return function;
}

void Launch(CUfunction function, CUdeviceptr a, CUdeviceptr b) {
  void* parameters[] = {&a, &b};
  OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
}

// SIMGPU_DEVICES=2.
void Devices() {
  Push("early");
  CUcontext contexts[2];
  CUfunction two[2];
  CUdeviceptr blocks[2];
  for (int device = 0; device < 2; ++device) {
    contexts[device] = Primary(device);
    two[device] = Two();
    Push(device == 0 ? "first" : "second");
    blocks[device] = Alloc(4096);
  }
  OK(cuCtxEnablePeerAccess(contexts[0], 0));
  OK(cuCtxSetCurrent(contexts[0]));
  OK(cuCtxEnablePeerAccess(contexts[1], 0));
  Launch(two[0], blocks[0], 0);
  OK(cuCtxSetCurrent(contexts[1]));
  Launch(two[1], blocks[1], 0);
  Launch(two[1], blocks[1], blocks[0]);  // of either: in both recordings
  OK(cuMemsetD8(blocks[0], 1, 16));      // only the other device's
  Launch(two[1], 0, 0);                  // without an own context: the current one
  for (int i = 0; i < 3; ++i) Pop();
  for (CUdeviceptr block : blocks) OK(cuMemFree(block));
}

// Contexts end, and open ranges continue.
void Contexts() {
  Push("eval");
  for (int i = 0; i < 3; ++i) {
    CUcontext context = nullptr;
    OK(cuInit(0));
    OK(cuCtxCreate(&context, nullptr, 0, 0));
    const CUfunction two = Two();
    const CUdeviceptr block = Alloc(4096);
    Launch(two, block, 0);
    OK(cuMemFree(block));
    if (i == 1) Pop();
    OK(cuCtxDestroy(context));
  }
}

// Ranges of other threads begin and end while contexts are made: every recording has them, whole.
void Threads() {
  OK(cuInit(0));
  std::atomic<bool> over{false};
  std::thread threads[2];
  for (std::thread& thread : threads) {
    thread = std::thread([&over] {
      while (!over.load()) {
        Push("eval");
        Pop();
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    CUcontext context = nullptr;
    OK(cuCtxCreate(&context, nullptr, 0, 0));
    for (int k = 0; k < 3; ++k) OK(cuMemFree(Alloc(4096)));
    OK(cuCtxDestroy(context));
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
}

// More ranges than are kept before there is a recording.
void Many() {
  Push("open");
  for (int i = 0; i < 5000; ++i) {
    Push("short");
    Pop();
  }
  Push("inner");
  Primary(0);
  OK(cuMemFree(Alloc(4096)));
  Pop();
  Pop();
}

// A child of a process that has recorded; it ends in the ordinary way.
void Fork() {
  Primary(0);
  const CUfunction two = Two();
  const CUdeviceptr block = Alloc(4096);
  Push("parent");
  Launch(two, block, 0);
  const pid_t child = fork();
  if (child == 0) {
    if (Pop() != -1 || Push("child") != 0 || Pop() != 0) exit(7);
    exit(0);
  }
  CHECK(Wait(child) == 0);
  Launch(two, block, 0);
  CHECK(Pop() == 0);
}

// The child is the first that uses the device, then the parent; the fork is within a range of the parent's.
void ForkFirst() {
  Push("parent");
  const pid_t child = fork();
  if (child == 0) CHECK(Push("child") == 0);
  if (child != 0) CHECK(Wait(child) == 0);
  Primary(0);
  const CUfunction two = Two();
  const CUdeviceptr block = Alloc(4096);
  Launch(two, block, 0);
  CHECK(Pop() == 0);
  if (child == 0) exit(0);
}

// A call that is only captured has no times, even if the launch before it was not requested.
void Captured() {
  const auto get =
      reinterpret_cast<decltype(&hotpack_get_collector_host)>(dlsym(RTLD_DEFAULT, "hotpack_get_collector_host"));
  CHECK(get != nullptr);
  const hotpack_collector_host* host = get(HOTPACK_COLLECTOR_HOST_VERSION);
  CHECK(host != nullptr && host->size == sizeof(*host) && get(HOTPACK_COLLECTOR_HOST_VERSION + 1) == nullptr);
  Primary(0);
  const CUfunction two = Two();
  const CUdeviceptr block = Alloc(4096);
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  Launch(two, block, 0);
  CHECK(host->launch(1, "two", nullptr, 0) == 1);  // as a collector does at the call's entry
  Launch(two, block, 0);                           // not asked for
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUdeviceptr none = 0;
  void* parameters[] = {&none, &none};
  OK(cuLaunchKernel(two, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  CHECK(host->launch(2, "two", stream, 0) == 0);
  CUgraph graph = nullptr;
  OK(cuStreamEndCapture(stream, &graph));
  CHECK(host->work(1, nullptr, host->now_ns(), host->now_ns()) == 1);
  CHECK(host->work(1, nullptr, 1, 2) == 0 && host->work(2, nullptr, 1, 2) == 0);
}

// The simulated device refuses them, behind the hooks.
void Batches() {
#if CUDA_VERSION >= 13000
  Primary(0);
  CUdeviceptr to[] = {Alloc(4096), Alloc(4096)}, from[] = {Alloc(4096), to[0]};
  size_t sizes[] = {16, 16}, first = 0;
  CUmemcpyAttributes attributes = {};
  cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, CU_STREAM_PER_THREAD);
  CUDA_MEMCPY3D_BATCH_OP copies[2] = {};
  for (CUDA_MEMCPY3D_BATCH_OP& copy : copies) {
    copy.src.type = copy.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    copy.src.op.ptr.ptr = from[0];
    copy.dst.op.ptr.ptr = to[1];
  }
  copies[1].src.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
  copies[1].dst.op.ptr.ptr = to[0];
  cuMemcpy3DBatchAsync(2, copies, 0, CU_STREAM_PER_THREAD);
#else
  printf("none");
#endif
}

}  // namespace

int main(int, char** argv) {
  const struct {
    const char* name;
    void (*run)();
  } scenarios[] = {{"devices", Devices}, {"contexts", Contexts},    {"threads", Threads},   {"many", Many},
                   {"fork", Fork},       {"fork_first", ForkFirst}, {"captured", Captured}, {"batches", Batches}};
  for (const auto& scenario : scenarios) {
    if (strcmp(argv[1], scenario.name) != 0) continue;
    scenario.run();
    return 0;
  }
  return 2;
}
