// Times a request and its release through the driver's interface: cuMemAlloc and cuMemFree, and their Async forms. The
// program's environment decides who answers: a driver alone, or hotpack's preload (README.md here). Under the preload
// every figure is of requests served by script, or the program fails.
#define __CUDA_API_VERSION_INTERNAL 1  // every variant under its exact name (_v2)
#include <benchmark/benchmark.h>
#include <cuda.h>
#include <dlfcn.h>

#include <vector>

#include "bench/benchmark_main.h"
#include "bench/training_sequence.h"
#include "runtime/include/hotpack.h"

namespace hotpack::bench {
namespace {

constexpr int kLayers = 64;  // 256 requests a step
constexpr int kMaxSteps = 50;

// hotpack's own functions, if its library is in the process and serves.
struct Own {
  decltype(&hotpack_step) step = reinterpret_cast<decltype(&hotpack_step)>(dlsym(RTLD_DEFAULT, "hotpack_step"));
  decltype(&hotpack_wait_plan) wait =
      reinterpret_cast<decltype(&hotpack_wait_plan)>(dlsym(RTLD_DEFAULT, "hotpack_wait_plan"));
  decltype(&hotpack_get_stats) stats =
      reinterpret_cast<decltype(&hotpack_get_stats)>(dlsym(RTLD_DEFAULT, "hotpack_get_stats"));

  // Returns the figures of the process's arenas, all zero if there is none.
  hotpack_stats Stats() const {
    hotpack_stats figures = {};
    if (stats != nullptr && stats(&figures, sizeof figures) != 0) figures = {};
    return figures;
  }
};

bool OnDevice() {
  CUcontext context = nullptr;
  return cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
         cuCtxSetCurrent(context) == CUDA_SUCCESS;
}

struct Calls {
  CUresult (*allocate)(CUdeviceptr*, size_t);
  CUresult (*release)(CUdeviceptr);
};
CUresult AllocateAsync(CUdeviceptr* address, size_t bytes) { return cuMemAllocAsync(address, bytes, nullptr); }
CUresult ReleaseAsync(CUdeviceptr address) { return cuMemFreeAsync(address, nullptr); }
constexpr Calls kPlain = {cuMemAlloc_v2, cuMemFree_v2};
constexpr Calls kAsync = {AllocateAsync, ReleaseAsync};

bool PlayStep(const Sequence& sequence, const Calls& calls, std::vector<CUdeviceptr>* addresses) {
  for (const Call& call : sequence.calls) {
    CUdeviceptr& address = (*addresses)[call.slot];
    if ((call.bytes != 0 ? calls.allocate(&address, call.bytes) : calls.release(address)) != CUDA_SUCCESS) return false;
  }
  return true;
}

void Pair(benchmark::State& state, const Calls& calls) {
  const Own own;
  const Sequence sequence = MakeTrainingSequence(kLayers);
  std::vector<CUdeviceptr> addresses(sequence.slots);
  if (!OnDevice() || !PlayStep(sequence, calls, &addresses)) {
    state.SkipWithError("the device gives no memory");
    return;
  }
  const bool served = own.Stats().requests > 0;
  bool whole = !served;  // whether the last step was served by script
  for (int step = 0; step < kMaxSteps && !whole; ++step) {
    own.step();
    const hotpack_stats before = own.Stats();
    if (!PlayStep(sequence, calls, &addresses)) break;
    own.wait(-1);
    whole = own.Stats().planned - before.planned == sequence.slots;
  }
  const hotpack_stats before = own.Stats();
  while (whole && state.KeepRunningBatch(sequence.slots)) {
    if (!PlayStep(sequence, calls, &addresses)) {
      state.SkipWithError("a call failed");
      return;
    }
  }
  const hotpack_stats after = own.Stats();
  if (!whole || (served && after.planned - before.planned != static_cast<uint64_t>(state.iterations()))) {
    state.SkipWithError("a request was not served by script");
  }
  state.counters["by_hotpack"] = served ? 1 : 0;
}

void DriverPair(benchmark::State& state) { Pair(state, kPlain); }
void DriverPairAsync(benchmark::State& state) { Pair(state, kAsync); }
BENCHMARK(DriverPair);
BENCHMARK(DriverPairAsync);

}  // namespace
}  // namespace hotpack::bench

int main(int argc, char** argv) { return hotpack::bench::RunBenchmarks(argc, argv); }
