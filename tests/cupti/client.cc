// A program on the simulated device, for the collector of kernel times: client CASE
// Every iteration allocates two blocks, and launches a kernel after each.
#define __CUDA_API_VERSION_INTERNAL 1  // every variant under its exact name (_v2)
#include <cuda.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#define CHECK(condition)                                               \
  do {                                                                 \
    if (!(condition)) {                                                \
      fprintf(stderr, "%d: CHECK(%s) failed\n", __LINE__, #condition); \
      exit(5);                                                         \
    }                                                                  \
  } while (false)
#define OK(call) CHECK((call) == CUDA_SUCCESS)

namespace {

constexpr size_t kBytes = 1 << 20;

CUfunction first = nullptr, second = nullptr;

CUfunction Kernel(const std::string& name) {
  const std::string ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry " + name + "(.param .u64 " +
                          name + "_param_0) { ret; }\n";
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  OK(cuModuleLoadData(&module, ptx.c_str()));
  OK(cuModuleGetFunction(&kernel, module, name.c_str()));
  return kernel;
}

void Launch(CUfunction kernel, CUdeviceptr address, CUstream stream) {
  void* parameters[] = {&address};
  OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
}

void Step(CUstream stream = nullptr) {
  CUdeviceptr a = 0, b = 0;
  OK(cuMemAlloc_v2(&a, kBytes));
  Launch(first, a, stream);
  OK(cuMemAlloc_v2(&b, 2 * kBytes));
  Launch(second, b, stream);
  OK(cuMemsetD8Async(b, 0, kBytes, stream));
  OK(cuMemFree_v2(a));
  OK(cuMemFree_v2(b));
}

void Steps(int count) {
  for (int i = 0; i < count; ++i) Step();
}

void Begin() {
  CUcontext context = nullptr;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  first = Kernel("first_kernel");
  second = Kernel("second_kernel");
}

// Another tool that comes later: until CUPTI is free for it.
void Second() {
  using Subscribe = int (*)(void**, void (*)(void*, int, unsigned, const void*), void*);
  const auto subscribe = reinterpret_cast<Subscribe>(dlsym(RTLD_DEFAULT, "cuptiSubscribe"));
  CHECK(subscribe != nullptr);
  void* handle = nullptr;
  Step();
  CHECK(subscribe(
            &handle, [](void*, int, unsigned, const void*) {}, nullptr) != 0);
  for (int i = 0; i < 2000; ++i) {
    Step();
    usleep(2000);
    if (subscribe(
            &handle, [](void*, int, unsigned, const void*) {}, nullptr) == 0) {
      printf("free\n");
      Steps(10);
      return;
    }
  }
  printf("never free\n");
}

// A child that ends in the ordinary way, with all its handlers.
void Fork() {
  Steps(20);
  const pid_t child = fork();
  if (child == 0) exit(0);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  Steps(20);
}

// A context that ends takes its recording with it.
void Context() {
  CUcontext own = nullptr;
  OK(cuInit(0));
  OK(cuCtxCreate_v2(&own, 0, 0));
  first = Kernel("first_kernel");
  second = Kernel("second_kernel");
  Steps(20);
  OK(cuCtxDestroy_v2(own));
}

// SIMGPU_DEVICES=2: each has a context and a recording.
void Devices() {
  CUcontext contexts[2];
  CUfunction kernels[2];
  OK(cuInit(0));
  for (int device = 0; device < 2; ++device) {
    OK(cuDevicePrimaryCtxRetain(&contexts[device], device));
    OK(cuCtxSetCurrent(contexts[device]));
    kernels[device] = Kernel(device == 0 ? "of_the_first" : "of_the_second");
  }
  for (int i = 0; i < 20; ++i) {
    for (int device = 0; device < 2; ++device) {
      OK(cuCtxSetCurrent(contexts[device]));
      CUdeviceptr block = 0;
      OK(cuMemAlloc_v2(&block, kBytes));
      Launch(kernels[device], block, nullptr);
      OK(cuMemFree_v2(block));
    }
  }
}

// Before anything of the device has been used, so the child is a process like any other; and the parent after it.
void ForkFirst() {
  const pid_t child = fork();
  int status = 0;
  if (child != 0) CHECK(waitpid(child, &status, 0) == child && status == 0);
  Begin();
  Steps(20);
  if (child == 0) exit(0);
}

void Graph() {
  Begin();
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr kept = 0;
  OK(cuMemAlloc_v2(&kept, kBytes));
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  Launch(first, kept, stream);
  Launch(second, kept, stream);
  OK(cuStreamEndCapture(stream, &graph));
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int i = 0; i < 5; ++i) OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
}

void Threads() {
  Begin();
  Step();  // the recording begins
  CUcontext context = nullptr;
  OK(cuCtxGetCurrent(&context));
  std::thread threads[3];
  for (std::thread& thread : threads) {
    thread = std::thread([context] {
      OK(cuCtxSetCurrent(context));
      Steps(50);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The process ends while another thread launches.
void Busy() {
  Begin();
  CUcontext context = nullptr;
  OK(cuCtxGetCurrent(&context));
  std::thread([context] {
    cuCtxSetCurrent(context);
    for (;;) {
      CUdeviceptr none = 0;
      void* parameters[] = {&none};
      cuLaunchKernel(first, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
      usleep(100);
    }
  }).detach();
  Steps(50);
  exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "context") return Context(), 0;
  if (name == "devices") return Devices(), 0;
  if (name == "fork_first") return ForkFirst(), 0;
  if (name == "graph") return Graph(), 0;
  if (name == "threads") return Threads(), 0;
  if (name == "busy") return Busy(), 0;
  Begin();
  if (name == "loop") Steps(argc > 2 ? atoi(argv[2]) : 40);
  if (name == "second") Second();
  if (name == "fork") Fork();
  if (name == "end") {
    Steps(20);
    usleep(500'000);  // records that have arrived by then are in the file
    _exit(0);
  }
  if (name == "killed") {
    Steps(20);
    usleep(500'000);
    kill(getpid(), 9);
  }
  return 0;
}
