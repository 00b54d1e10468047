// Stream captures: the calls that are possible during one, the memory of a graph, and that replays write only into it.
#include <future>

#include "tests/gpu/probe.h"
#include "tests/gpu/tally.h"

namespace hotpack::gpu {
namespace {

// A graph made by capturing, with its executable; both are destroyed at the end.
class Graph {
 public:
  ~Graph() { Destroy(); }
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void EndCapture(cudaStream_t stream) {
    HOTPACK_NEED(cudaStreamEndCapture(stream, &graph_));
    HOTPACK_NEED(cudaGraphInstantiate(&exec_, graph_, 0));
  }
  void Launch(cudaStream_t stream) { HOTPACK_NEED(cudaGraphLaunch(exec_, stream)); }
  void Destroy() {
    if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
    exec_ = nullptr;
    graph_ = nullptr;
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

void* Filled(size_t bytes, unsigned char value) {
  void* block = nullptr;
  HOTPACK_NEED(cudaMalloc(&block, bytes));
  HOTPACK_NEED(cudaMemset(block, value, bytes));
  HOTPACK_NEED(cudaDeviceSynchronize());
  return block;
}

// cudaMallocAsync on the capturing stream: the graph owns the memory and has it at each replay.
void GraphMemory(const Probe& probe) {
  const Stream stream;
  void* result = Filled(kMiB, 0);
  const hotpack_stats before = probe.Stats();
  Graph graph;
  HOTPACK_NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  void* inner = nullptr;
  HOTPACK_NEED(cudaMallocAsync(&inner, kMiB, stream));
  HOTPACK_NEED(cudaMemsetAsync(inner, kNewByte, kMiB, stream));
  HOTPACK_NEED(cudaMemcpyAsync(result, inner, kMiB, cudaMemcpyDeviceToDevice, stream));
  HOTPACK_NEED(cudaFreeAsync(inner, stream));
  graph.EndCapture(stream);
  const hotpack_stats after = probe.Stats();
  size_t wrong = 0;
  for (int replay = 0; replay < 3; ++replay) {
    HOTPACK_NEED(cudaMemsetAsync(result, 0, kMiB, stream));
    graph.Launch(stream);
    HOTPACK_NEED(cudaStreamSynchronize(stream));
    wrong += CountOther(result, kMiB, kNewByte);
  }
  probe.Must(wrong == 0, "capture.graph_memory.values", "each replay has its memory",
             std::to_string(wrong) + " bytes wrong");
  if (probe.hotpack) {
    probe.found->Check(after.passed_through > before.passed_through && after.requests == before.requests,
                       "capture.graph_memory.owner", "the request is left to the driver",
                       std::to_string(after.requests - before.requests) + " answered, " +
                           std::to_string(after.passed_through - before.passed_through) + " passed through");
  }
  HOTPACK_NEED(cudaFree(result));
}

enum class Call { kMalloc, kFree, kMallocAsync, kFreeAsync };
constexpr const char* kCallNames[] = {"cudaMalloc", "cudaFree", "cudaMallocAsync", "cudaFreeAsync"};
constexpr const char* kModeNames[] = {"global", "thread_local", "relaxed"};

struct Attempt {
  cudaStreamCaptureMode mode;
  bool other_thread;
  Call call;

  std::string Name() const {
    return std::string("capture.during_") + kModeNames[mode] + "." + (other_thread ? "other_thread." : "same_thread.") +
           kCallNames[static_cast<int>(call)];
  }
  // cudaThreadExchangeStreamCaptureMode: cudaMalloc and similar calls are unsafe. A global capture forbids them to
  // every thread, a thread-local one to its own, a relaxed one to none. Calls ordered by another stream are not unsafe.
  bool Allowed() const {
    if (call == Call::kMallocAsync || call == Call::kFreeAsync || mode == cudaStreamCaptureModeRelaxed) return true;
    return mode == cudaStreamCaptureModeThreadLocal && other_thread;
  }
};

// The asynchronous calls name `stream`, which is not capturing.
cudaError_t Do(Call call, void** block, cudaStream_t stream) {
  switch (call) {
    case Call::kMalloc:
      return cudaMalloc(block, kMiB);
    case Call::kFree:
      return cudaFree(*block);
    case Call::kMallocAsync:
      return cudaMallocAsync(block, kMiB, stream);
    case Call::kFreeAsync:
      return cudaFreeAsync(*block, stream);
  }
  return cudaErrorUnknown;
}

void Judge(const Probe& probe, const Attempt& attempt, cudaError_t called, cudaError_t ended) {
  const bool good = called == cudaSuccess && ended == cudaSuccess;
  const std::string seen = ErrorName(called) + ", end of capture " + ErrorName(ended);
  if (attempt.Allowed()) {
    probe.Must(good, attempt.Name(), "allowed, and the capture stays valid", seen);
  } else if (!probe.hotpack) {
    probe.found->Fact(called != cudaSuccess && ended != cudaSuccess, attempt.Name(),
                      "refused, and the capture is invalidated", seen);
  } else {
    probe.found->Check(called != cudaSuccess || ended == cudaSuccess, attempt.Name(),
                       "refused as by the driver, or allowed with the capture valid", seen);
  }
}

void Try(const Probe& probe, const Attempt& attempt, void* target) {
  const Stream capturing, other;
  const bool frees = attempt.call == Call::kFree || attempt.call == Call::kFreeAsync;
  const bool ordered = attempt.call == Call::kMallocAsync || attempt.call == Call::kFreeAsync;
  void* block = nullptr;
  if (frees) HOTPACK_NEED(Allocate(ordered ? Way::kAsync : Way::kMalloc, kMiB, other, &block));
  HOTPACK_NEED(cudaDeviceSynchronize());

  HOTPACK_NEED(cudaStreamBeginCapture(capturing, attempt.mode));
  HOTPACK_NEED(cudaMemsetAsync(target, kNewByte, kMiB, capturing));
  const auto call = [&] { return Do(attempt.call, &block, other); };
  const cudaError_t called = attempt.other_thread ? std::async(std::launch::async, call).get() : call();
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(capturing, &graph);
  cudaGetLastError();
  if (graph != nullptr) HOTPACK_NEED(cudaGraphDestroy(graph));
  Judge(probe, attempt, called, ended);

  HOTPACK_NEED(cudaDeviceSynchronize());
  const bool left = frees ? called != cudaSuccess : called == cudaSuccess;
  if (left) HOTPACK_NEED(Release(ordered ? Way::kAsync : Way::kMalloc, block, other));
  HOTPACK_NEED(cudaDeviceSynchronize());
}

void EveryMode(const Probe& probe) {
  void* target = Filled(kMiB, 0);
  for (const auto mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    for (const bool other_thread : {false, true}) {
      for (const Call call : {Call::kMalloc, Call::kFree, Call::kMallocAsync, Call::kFreeAsync}) {
        Try(probe, {mode, other_thread, call}, target);
      }
    }
  }
  HOTPACK_NEED(cudaFree(target));
}

// A graph uses a block that existed before its capture. Replays write only there, whatever else is allocated and
// released. After the graph's end the block's memory is free again.
void BlockOfGraph(const Probe& probe) {
  constexpr size_t kBytes = 2 * kMiB;
  constexpr unsigned char kCaptured = 0x11;
  const Stream stream, other;
  void* before = Filled(kBytes, kNewByte);
  void* block = Filled(kBytes, 0);
  void* after = Filled(kBytes, kNewByte);
  Graph graph;
  HOTPACK_NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  HOTPACK_NEED(cudaMemsetAsync(block, kCaptured, kBytes, stream));
  HOTPACK_NEED(LegacyKernels().keep_writing(static_cast<uint32_t*>(block), kBytes / 4, WordOf(kOldByte),
                                            probe.Nanoseconds(4), stream));
  graph.EndCapture(stream);
  size_t inside = 0, outside = 0;
  for (int replay = 0; replay < probe.Rounds(8); ++replay) {
    graph.Launch(stream);
    void* passing = nullptr;
    HOTPACK_NEED(cudaMalloc(&passing, kBytes));
    HOTPACK_NEED(cudaMemsetAsync(passing, kNewByte, kBytes, other));
    HOTPACK_NEED(cudaDeviceSynchronize());
    inside += CountOther(block, kBytes, probe.computes ? kOldByte : kCaptured);
    for (const void* p : {before, after, static_cast<void*>(passing)}) outside += CountOther(p, kBytes, kNewByte);
    HOTPACK_NEED(cudaFree(passing));
  }
  graph.Destroy();
  HOTPACK_NEED(cudaFree(block));
  void* next = Filled(kBytes, kNewByte);
  outside += CountOther(next, kBytes, kNewByte);
  probe.Must(inside == 0, "capture.replay.inside", "replays write their block",
             std::to_string(inside) + " bytes wrong");
  probe.Must(outside == 0, "capture.replay.outside", "replays write nothing else",
             std::to_string(outside) + " bytes wrong");
  for (void* p : {before, after, next}) HOTPACK_NEED(cudaFree(p));
}

// A block that running work uses is given back during a relaxed capture of another stream, and its memory asked for.
void FreedDuringCapture(const Probe& probe) {
  const Stream capturing, user, next;
  void* target = Filled(kMiB, 0);
  Tally tally;
  for (int round = 0; round < probe.Rounds(4); ++round) {
    void* old = nullptr;
    void* block = nullptr;
    HOTPACK_NEED(cudaMalloc(&old, kMiB));
    HOTPACK_NEED(LegacyKernels().keep_writing(static_cast<uint32_t*>(old), kMiB / 4, WordOf(kOldByte),
                                              probe.Nanoseconds(6), user));
    HOTPACK_NEED(cudaStreamBeginCapture(capturing, cudaStreamCaptureModeRelaxed));
    HOTPACK_NEED(cudaMemsetAsync(target, kNewByte, kMiB, capturing));
    HOTPACK_NEED(cudaFree(old));
    HOTPACK_NEED(cudaMalloc(&block, kMiB));
    HOTPACK_NEED(cudaMemsetAsync(block, kNewByte, kMiB, next));
    HOTPACK_NEED(LegacyKernels().watch(static_cast<const uint32_t*>(block), kMiB / 4, WordOf(kNewByte),
                                       probe.Nanoseconds(6), tally.wrong(), next));
    Graph graph;
    graph.EndCapture(capturing);
    graph.Launch(capturing);
    HOTPACK_NEED(cudaDeviceSynchronize());
    tally.Block(block, kMiB, block == old);
    HOTPACK_NEED(cudaFree(block));
  }
  tally.Judge(probe, "capture.freed_during_capture");
  HOTPACK_NEED(cudaFree(target));
}

// The arena has to grow while a graph is running.
void GrowingMeanwhile(const Probe& probe) {
  constexpr size_t kBytes = 4 * kMiB;
  const Stream stream, other;
  void* block = Filled(kBytes, 0);
  Graph graph;
  HOTPACK_NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  HOTPACK_NEED(LegacyKernels().spin(probe.Nanoseconds(20), stream));
  HOTPACK_NEED(cudaMemsetAsync(block, kNewByte, kBytes, stream));
  graph.EndCapture(stream);
  graph.Launch(stream);
  std::vector<void*> more(32);
  for (void*& p : more) {
    HOTPACK_NEED(cudaMalloc(&p, kBytes));
    HOTPACK_NEED(cudaMemsetAsync(p, kOldByte, kBytes, other));
  }
  HOTPACK_NEED(cudaDeviceSynchronize());
  size_t wrong = CountOther(block, kBytes, kNewByte);
  for (void* p : more) wrong += CountOther(p, kBytes, kOldByte);
  probe.Must(wrong == 0, "capture.growing_meanwhile", "every block has its value",
             std::to_string(wrong) + " bytes wrong");
  for (void* p : more) HOTPACK_NEED(cudaFree(p));
  graph.Destroy();
  HOTPACK_NEED(cudaFree(block));
}

}  // namespace

void RunCapture(Probe& probe) {
  GrowingMeanwhile(probe);  // first: the arena is small
  GraphMemory(probe);
  EveryMode(probe);
  BlockOfGraph(probe);
  FreedDuringCapture(probe);
}

}  // namespace hotpack::gpu
