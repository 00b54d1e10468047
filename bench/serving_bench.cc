// One allocation and release served by script, and alternatives for comparison. Each figure is per pair.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "bench/benchmark_main.h"
#include "bench/best_fit_map.h"
#include "bench/script_pairs.h"
#include "bench/serving_job.h"
#include "bench/thread_job.h"
#include "bench/training_sequence.h"

namespace hotpack::bench {
namespace {

constexpr int kLayers = 64;  // 256 requests a step

void OnScriptPair(benchmark::State& state) {
  ServingJob job(kLayers);
  PlayByScript(state, job);
}
BENCHMARK(OnScriptPair);

// Blocks on several streams in turn: the cost of releases' points, and the waits between streams (`waits` per pair).
void OnScriptStreams(benchmark::State& state) {
  ServingJob job(kLayers);
  const auto streams = static_cast<uint32_t>(state.range(0));
  if (!job.WarmUp()) {
    state.SkipWithError("the engine does not serve the step by script");
    return;
  }
  uint64_t waits = 0;
  while (state.KeepRunningBatch(job.PairsPerStep())) {
    if (!job.PlayStepOnStreams(streams, &waits)) {
      state.SkipWithError("a request failed");
      return;
    }
  }
  if (!job.AllPlanned()) state.SkipWithError("a request was not served by script");
  state.counters["waits"] = static_cast<double>(waits) / static_cast<double>(state.iterations());
}
BENCHMARK(OnScriptStreams)->DenseRange(1, 4)->ArgName("streams");

// A job that leaves its script: in so many requests there is another one of an unplanned size. A pair is any of them.
void OffScriptPair(benchmark::State& state) {
  ServingJob job(kLayers);
  const auto every = static_cast<uint64_t>(state.range(0));
  if (!job.WarmUp()) {
    state.SkipWithError("the engine does not serve the step by script");
    return;
  }
  const hotpack_stats before = job.Stats();
  const int64_t others = job.PairsPerStep() / state.range(0);
  while (state.KeepRunningBatch(job.PairsPerStep() + others)) {
    if (!job.PlayStepWithOthers(every)) {
      state.SkipWithError("a request failed");
      return;
    }
  }
  const hotpack_stats after = job.Stats();
  if (after.divergences == before.divergences) state.SkipWithError("the job has not left its script");
  state.counters["by_script"] =
      static_cast<double>(after.planned - before.planned) / static_cast<double>(after.requests - before.requests);
}
BENCHMARK(OffScriptPair)->Arg(256)->Arg(64)->Arg(16)->Arg(4)->ArgName("one_in");

// Threads on one arena. Measures nanoseconds of the wall clock between two pairs of any threads.
void ThreadPair(benchmark::State& state, bool script) {
  static std::unique_ptr<ThreadJob> job;
  static hotpack_stats before;
  if (state.thread_index() == 0) {
    job = std::make_unique<ThreadJob>(script, 1);
    job->WarmUp(static_cast<size_t>(state.threads()));
    before = job->engine().Stats();
  }
  std::mt19937_64 random(static_cast<uint64_t>(state.thread_index()));
  DeviceAddress address = 0;
  // The threads begin together, once all are ready.
  for (auto _ : state) job->Replace(&address, &random);
  if (job->engine().Release(address, 0) != EngineStatus::kOk || job->failed()) state.SkipWithError("a request failed");
  if (state.thread_index() != 0) return;
  const hotpack_stats after = job->engine().Stats();
  const auto of_all = [](double figure) { return benchmark::Counter(figure, benchmark::Counter::kDefaults); };
  state.counters["by_script"] = of_all(static_cast<double>(after.planned - before.planned) /
                                       static_cast<double>(after.requests - before.requests));
}
void ScriptThreads(benchmark::State& state) { ThreadPair(state, true); }
void BestFitThreads(benchmark::State& state) { ThreadPair(state, false); }
BENCHMARK(ScriptThreads)->ThreadRange(1, 8)->UseRealTime();
BENCHMARK(BestFitThreads)->ThreadRange(1, 8)->UseRealTime();

// Nothing repeats: best fit with so many live blocks. It is the cost of a job with changing shapes.
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

enum Order : int64_t { kInOrder, kRandom };

// So many blocks of up to 16 KiB are requested, and all released: in the order of their requests, or in a random one.
// Measures the releases alone.
void ReleaseOfLive(benchmark::State& state) {
  UnbackedDeviceMemory memory;
  Engine engine(&memory, {});
  std::vector<DeviceAddress> blocks(static_cast<size_t>(state.range(0)));
  std::mt19937_64 random(1);
  const auto fill = [&] {
    return std::all_of(blocks.begin(), blocks.end(), [&](DeviceAddress& block) {
      return engine.Allocate(1 + random() % (16 << 10), 0, &block) == EngineStatus::kOk;
    });
  };
  bool ok = true;
  while (ok && state.KeepRunningBatch(state.range(0))) {
    state.PauseTiming();
    ok = fill();
    if (state.range(1) == kRandom) std::shuffle(blocks.begin(), blocks.end(), random);
    state.ResumeTiming();
    for (const DeviceAddress block : blocks) ok &= engine.Release(block, 0) == EngineStatus::kOk;
  }
  if (!ok) state.SkipWithError("a request failed");
}
BENCHMARK(ReleaseOfLive)->ArgsProduct({{5000, 50000, 400000}, {kInOrder, kRandom}})->ArgNames({"live", "random"});

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

int main(int argc, char** argv) { return hotpack::bench::RunBenchmarks(argc, argv); }
