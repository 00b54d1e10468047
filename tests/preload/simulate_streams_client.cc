// hotpack's handling of streams and graphs, on the simulated device, whose checker is the judge:
//   simulate_streams_client CASE
#define __CUDA_API_VERSION_INTERNAL 1  // every variant under its exact name (_v2, _ptsz)
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "runtime/include/hotpack.h"

#define OK(call) CHECK((call) == CUDA_SUCCESS)
#define CHECK(condition)                                               \
  do {                                                                 \
    if (!(condition)) {                                                \
      fprintf(stderr, "%d: CHECK(%s) failed\n", __LINE__, #condition); \
      exit(5);                                                         \
    }                                                                  \
  } while (false)

namespace {

constexpr size_t kBytes = 1 << 20;

void Start() {
  CUcontext context = nullptr;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
}

CUdeviceptr Alloc(size_t bytes = kBytes) {
  CUdeviceptr address = 0;
  OK(cuMemAlloc_v2(&address, bytes));
  return address;
}

CUstream NewStream() {
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

// A kernel of one pointer. (A graph may use what its program has released by launches; the checker takes that in
// graphs.)
CUfunction Kernel() {
  constexpr char kPtx[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry work(.param .u64 work_param_0) { ret; }
)";
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  OK(cuModuleLoadData(&module, kPtx));
  OK(cuModuleGetFunction(&kernel, module, "work"));
  return kernel;
}

void Launch(CUfunction kernel, CUdeviceptr address, CUstream stream) {
  void* parameters[] = {&address};
  OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
}

void Work(CUdeviceptr address, CUstream stream) { OK(cuMemsetD8Async(address, 1, 512, stream)); }

// A block that was allocated in a capture is the graph's as long as there is something of it.
void Graph() {
  Start();
  const CUstream stream = NewStream();
  const CUfunction kernel = Kernel();
  CUgraph graph = nullptr, clone = nullptr;
  CUgraphExec exec = nullptr;
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  const CUdeviceptr temporary = Alloc(), kept = Alloc();
  Launch(kernel, temporary, stream);
  Launch(kernel, kept, stream);
  OK(cuMemFree_v2(temporary));
  OK(cuStreamEndCapture(stream, &graph));
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  OK(cuMemFree_v2(kept));  // after the capture: the same
  std::vector<CUdeviceptr> others;
  for (int i = 0; i < 20; ++i) {
    others.push_back(Alloc());
    CHECK(others.back() != temporary && others.back() != kept);
    Work(others.back(), nullptr);
    OK(cuGraphLaunch(exec, stream));
  }
  for (const CUdeviceptr other : others) OK(cuMemFree_v2(other));
  OK(cuGraphClone(&clone, graph));
  OK(cuGraphDestroy(graph));
  CHECK(Alloc(2 * kBytes) != temporary);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(clone));
  bool again = false;  // now it may be had
  for (int i = 0; i < 40 && !again; ++i) {
    const CUdeviceptr block = Alloc();
    Work(block, nullptr);
    again = block == temporary;
  }
  CHECK(again);
}

// Another thread's block during captures (a framework's backward pass has threads of its own) is kept for both graphs.
void GraphOfOtherThread() {
  Start();
  CUcontext context = nullptr;
  OK(cuCtxGetCurrent(&context));
  const CUstream streams[] = {NewStream(), NewStream()};
  CUgraph graphs[2] = {};
  for (const CUstream stream : streams) OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUdeviceptr block = 0;
  std::thread([&] {
    OK(cuCtxSetCurrent(context));
    block = Alloc();
    OK(cuMemFree_v2(block));
  }).join();
  for (int i = 0; i < 2; ++i) OK(cuStreamEndCapture(streams[i], &graphs[i]));
  const auto given_again = [&] {
    std::vector<CUdeviceptr> others;
    for (int i = 0; i < 40; ++i) others.push_back(Alloc());
    const bool again = std::find(others.begin(), others.end(), block) != others.end();
    for (const CUdeviceptr other : others) OK(cuMemFree_v2(other));
    return again;
  };
  CHECK(!given_again());
  OK(cuGraphDestroy(graphs[0]));
  CHECK(!given_again());
  OK(cuGraphDestroy(graphs[1]));
  CHECK(given_again());
}

// A capture that comes to nothing keeps nothing.
void NoGraph() {
  Start();
  const CUstream stream = NewStream();
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  const CUdeviceptr block = Alloc();
  Work(block, stream);
  OK(cuMemFree_v2(block));
  OK(cuStreamDestroy_v2(stream));
  CHECK(Alloc() == block);
}

// A thread's default streams in two contexts, both capturing: each graph keeps its own.
void TwoContexts() {
  Start();
  CUcontext first = nullptr, second = nullptr;
  CUgraph graphs[2] = {};
  OK(cuCtxGetCurrent(&first));
  OK(cuCtxCreate_v4(&second, nullptr, 0, 0));
  CUdeviceptr blocks[2] = {};
  for (int i = 0; i < 2; ++i) {
    OK(cuCtxSetCurrent(i == 0 ? first : second));
    OK(cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
    blocks[i] = Alloc();
    OK(cuMemFree_v2(blocks[i]));
  }
  for (int i = 2; i-- > 0;) {  // the newer one first
    OK(cuCtxSetCurrent(i == 0 ? first : second));
    OK(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graphs[i]));
  }
  OK(cuGraphDestroy(graphs[1]));
  OK(cuCtxSetCurrent(first));
  CHECK(Alloc() != blocks[0]);
  OK(cuCtxSetCurrent(second));
  CHECK(Alloc() == blocks[1]);
  OK(cuGraphDestroy(graphs[0]));
}

// A capture that ends with its context does not affect the thread's later requests.
void CaptureEndsWithContext() {
  Start();
  CUcontext first = nullptr, second = nullptr;
  OK(cuCtxGetCurrent(&first));
  OK(cuCtxCreate_v4(&second, nullptr, 0, 0));
  OK(cuStreamBeginCapture_v2(NewStream(), CU_STREAM_CAPTURE_MODE_RELAXED));
  Alloc();
  OK(cuCtxDestroy_v2(second));
  OK(cuCtxSetCurrent(first));
  const CUdeviceptr block = Alloc();
  OK(cuMemFree_v2(block));
  CHECK(Alloc() == block);
}

void RecordUse() {
  Start();
  const auto record = reinterpret_cast<int (*)(void*, void*)>(dlsym(RTLD_DEFAULT, "hotpack_record_use"));
  CHECK(record != nullptr);
  CHECK(record(reinterpret_cast<void*>(0x1234), nullptr) != 0);
  const CUstream a = NewStream(), b = NewStream(), c = NewStream();
  for (int i = 0; i < 10; ++i) {
    CUdeviceptr block = 0, next = 0;
    OK(cuMemAllocAsync(&block, kBytes, a));
    Work(block, a);
    CUevent event = nullptr;
    OK(cuEventCreate(&event, 0));
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(b, event, 0));
    Work(block, b);
    CHECK(record(reinterpret_cast<void*>(block + 100), b) == 0);
    OK(cuMemFreeAsync(block, a));  // the program says nothing of b
    OK(cuMemAllocAsync(&next, kBytes, i % 2 == 0 ? a : c));
    CHECK(next == block);
    Work(next, i % 2 == 0 ? a : c);
    OK(cuMemFreeAsync(next, i % 2 == 0 ? a : c));
  }
}

// More streams than hotpack has numbers for, all alive; then many that come and go.
void ManyStreams() {
  Start();
  std::vector<CUstream> streams;
  for (int i = 0; i < 400; ++i) {
    streams.push_back(NewStream());
    const CUdeviceptr block = Alloc();
    Work(block, streams.back());
    OK(cuMemFree_v2(block));
    const CUdeviceptr next = Alloc();
    Work(next, streams[static_cast<size_t>(i) / 2]);
    OK(cuMemFree_v2(next));
  }
}

void StreamsComeAndGo() {
  Start();
  for (int i = 0; i < 2000; ++i) {
    const CUstream stream = NewStream();
    const CUdeviceptr block = Alloc();
    Work(block, stream);
    if (i % 3 == 0) OK(cuMemFree_v2(block));
    OK(cuStreamDestroy_v2(stream));
    if (i % 3 != 0) OK(cuMemFree_v2(block));
  }
  const auto get_stats = reinterpret_cast<int (*)(hotpack_stats*, size_t)>(dlsym(RTLD_DEFAULT, "hotpack_get_stats"));
  hotpack_stats stats = {};
  CHECK(get_stats(&stats, sizeof(stats)) == 0 && stats.reserved_peak <= 8 * kBytes);  // none is lost on the way
}

// Threads' default streams, more than have numbers; each thread ends.
void ManyThreads() {
  Start();
  CUcontext context = nullptr;
  OK(cuCtxGetCurrent(&context));
  for (int i = 0; i < 300; ++i) {
    std::thread([context] {
      OK(cuCtxSetCurrent(context));
      CUdeviceptr block = 0;
      OK(cuMemAllocAsync_ptsz(&block, kBytes, nullptr));
      Work(block, CU_STREAM_PER_THREAD);
      OK(cuMemFreeAsync_ptsz(block, nullptr));
    }).join();
  }
}

}  // namespace

int main(int, char** argv) {
  const std::map<std::string, std::function<void()>> cases = {{"graph", Graph},
                                                              {"no_graph", NoGraph},
                                                              {"graph_of_other_thread", GraphOfOtherThread},
                                                              {"record_use", RecordUse},
                                                              {"two_contexts", TwoContexts},
                                                              {"capture_ends_with_context", CaptureEndsWithContext},
                                                              {"many_streams", ManyStreams},
                                                              {"streams_come_and_go", StreamsComeAndGo},
                                                              {"many_threads", ManyThreads}};
  cases.at(argv[1])();
  return 0;
}
