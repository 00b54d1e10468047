// Which calls wait for running work: each is made while a kernel runs, and then the kernel's end is queried. Without
// hotpack these are facts about the driver. With it, they are hotpack's behaviour (docs/environment.md,
// HOTPACK_FREE_SYNC).
#include <cstdlib>
#include <cstring>
#include <functional>

#include "tests/gpu/probe.h"

namespace hotpack::gpu {
namespace {

struct Expectation {
  const char* name;
  bool waits;       // the driver does
  bool always;      // waits under hotpack with HOTPACK_FREE_SYNC=always
  bool one_stream;  // the default stream is the only one: hotpack need not wait
};

bool FreeSyncAlways() {
  const char* setting = getenv("HOTPACK_FREE_SYNC");
  return setting != nullptr && strcmp(setting, "always") == 0;
}

class FreeSync {
 public:
  explicit FreeSync(Probe& probe) : probe_(probe) {}

  // `prepare` is called before the kernel starts, `call` while it runs on `stream`, `cleanup` after it.
  void Ask(const Expectation& expectation, cudaStream_t stream, const std::function<cudaError_t()>& prepare,
           const std::function<cudaError_t()>& call, const std::function<cudaError_t()>& cleanup = nullptr) {
    int waited = 0, counted = 0;
    std::vector<double> samples;
    const int rounds = probe_.simulated ? 1 : probe_.Rounds(6);
    for (int i = 0; i < rounds; ++i) {
      HOTPACK_NEED(prepare());
      HOTPACK_NEED(cudaDeviceSynchronize());
      HOTPACK_NEED(LegacyKernels().spin(probe_.Nanoseconds(60), stream));
      const bool running = cudaStreamQuery(stream) == cudaErrorNotReady;
      const Stopwatch watch;
      HOTPACK_NEED(call());
      const double ns = watch.Nanoseconds();
      const bool ended = cudaStreamQuery(stream) == cudaSuccess;
      HOTPACK_NEED(cudaStreamSynchronize(stream));
      if (cleanup != nullptr) HOTPACK_NEED(cleanup());
      cudaGetLastError();                // cudaErrorNotReady of the queries
      if (!running || i == 0) continue;  // the first call may load and set up things
      ++counted;
      waited += ended;
      samples.push_back(ns);
    }
    Judge(expectation, waited, counted);
    if (!probe_.simulated) probe_.found->AddFigure(Name(expectation), "ns", samples);
  }

 private:
  static std::string Name(const Expectation& e) { return std::string("free_sync.") + e.name; }

  void Judge(const Expectation& e, int waited, int counted) const {
    if (probe_.simulated) {
      probe_.found->Skip(Name(e), "nothing is ever running on the simulated device");
      return;
    }
    if (counted == 0) {
      probe_.found->Skip(Name(e), "the kernel had always ended before the call");
      return;
    }
    const std::string seen = "waited " + std::to_string(waited) + " times of " + std::to_string(counted);
    if (e.always && probe_.hotpack && FreeSyncAlways()) {
      probe_.found->Check(waited == counted, Name(e), "waits (HOTPACK_FREE_SYNC=always)", seen);
    } else if (e.one_stream && probe_.hotpack) {
      probe_.found->Fact(waited == 0, Name(e), "hotpack's: returns at once while there is one stream", seen);
    } else {
      probe_.found->Fact(waited == (e.waits ? counted : 0), Name(e),
                         e.waits ? "the driver's: waits for running work" : "the driver's: returns at once", seen);
    }
  }

  Probe& probe_;
};

void* block = nullptr;

cudaError_t Plain() { return cudaMalloc(&block, kMiB); }
cudaError_t GiveBackPlain() { return cudaFree(block); }
cudaError_t Nothing() { return cudaSuccess; }

}  // namespace

void RunFreeSync(Probe& probe) {
  FreeSync ask(probe);
  const auto ordered = [](cudaStream_t stream) { return [stream] { return cudaMallocAsync(&block, kMiB, stream); }; };
  const auto give_back = [](cudaStream_t stream) { return [stream] { return cudaFreeAsync(block, stream); }; };

  // While the default stream is the only one.
  ask.Ask({"one_stream.cudaFree", true, true, true}, nullptr, Plain, GiveBackPlain);
  ask.Ask({"one_stream.cudaFreeAsync", false, false, true}, nullptr, ordered(nullptr), give_back(nullptr));
  ask.Ask({"one_stream.cudaMalloc", false, false, true}, nullptr, Nothing, Plain, GiveBackPlain);

  const Stream a, b;
  ask.Ask({"streams.cudaFree", true, true, false}, a, Plain, GiveBackPlain);
  ask.Ask({"streams.cudaFreeAsync", false, false, false}, a, ordered(a), give_back(a));
  ask.Ask({"streams.cudaFreeAsync_on_idle_stream", false, false, false}, a, ordered(b), give_back(b));
  // cudaFree: "will not perform any implicit synchronization when the pointer was allocated with cudaMallocAsync".
  ask.Ask({"streams.cudaFree_of_cudaMallocAsync", false, false, false}, a, ordered(a), GiveBackPlain);
  ask.Ask({"streams.cudaMalloc", false, false, false}, a, Nothing, Plain, GiveBackPlain);
  ask.Ask({"streams.cudaMallocAsync", false, false, false}, a, Nothing, ordered(a), give_back(a));
}

}  // namespace hotpack::gpu
