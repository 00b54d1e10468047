// One allocation and release served by script, beside what an engineer would compare it with. Each figure is per pair.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "bench/best_fit_map.h"
#include "bench/serving_job.h"
#include "bench/training_sequence.h"

namespace hotpack::bench {
namespace {

constexpr int kLayers = 64;  // 256 requests a step

void OnScriptPair(benchmark::State& state) {
  ServingJob job(kLayers);
  if (!job.WarmUp()) {
    state.SkipWithError("the engine does not serve the step by script");
    return;
  }
  while (state.KeepRunningBatch(job.PairsPerStep())) {
    if (!job.PlayStep()) {
      state.SkipWithError("a request failed");
      return;
    }
  }
  if (!job.AllPlanned()) state.SkipWithError("a request was not served by script");
}
BENCHMARK(OnScriptPair);

// Nothing repeats: best fit, with so many blocks live. What a job with changing shapes pays.
void BestFitPair(benchmark::State& state) {
  UnbackedDeviceMemory memory;
  Engine engine(&memory, {});
  std::vector<DeviceAddress> blocks(static_cast<size_t>(state.range(0)));
  uint64_t random = 1;
  auto next = [&random] { return (random = random * 6364136223846793005u + 1442695040888963407u) >> 33; };
  auto pair = [&] {
    DeviceAddress& block = blocks[next() % blocks.size()];
    const bool released = block == 0 || engine.Release(block, 0) == EngineStatus::kOk;
    return released && engine.Allocate(1 + next() % (1 << 20), 0, &block) == EngineStatus::kOk;
  };
  for (size_t i = 0; i < 10 * blocks.size(); ++i) pair();
  for (auto _ : state) {
    if (!pair()) {
      state.SkipWithError("a request failed");
      return;
    }
  }
}
BENCHMARK(BestFitPair)->Arg(200)->Arg(5000);

void MutexPair(benchmark::State& state) {
  std::mutex mutex;
  for (auto _ : state) {
    mutex.lock();
    benchmark::ClobberMemory();
    mutex.unlock();
  }
}
BENCHMARK(MutexPair);

// The same step through malloc. Sizes are divided by 4096: undivided, each call would be an mmap.
void MallocPair(benchmark::State& state) {
  const Sequence sequence = MakeTrainingSequence(kLayers);
  std::vector<void*> pointers(sequence.slots);
  while (state.KeepRunningBatch(sequence.slots)) {
    for (const Call& call : sequence.calls) {
      if (call.bytes != 0) {
        pointers[call.slot] = std::malloc(call.bytes / 4096);
        benchmark::DoNotOptimize(pointers[call.slot]);
      } else {
        std::free(pointers[call.slot]);
      }
    }
  }
}
BENCHMARK(MallocPair);

void BestFitMapPair(benchmark::State& state) {
  const Sequence sequence = MakeTrainingSequence(kLayers);
  std::vector<uint64_t> starts(sequence.slots);
  BestFitMap heap(uint64_t{1} << 40);
  while (state.KeepRunningBatch(sequence.slots)) {
    for (const Call& call : sequence.calls) {
      if (call.bytes != 0) {
        starts[call.slot] = heap.Allocate(call.bytes);
      } else {
        heap.Release(starts[call.slot]);
      }
    }
  }
}
BENCHMARK(BestFitMapPair);

}  // namespace
}  // namespace hotpack::bench

BENCHMARK_MAIN();
