// The time of one solve and how near the lower bound it ends, on generated instances.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <string>

#include "packer/pack.h"
#include "packer/types.h"
#include "packer/validator.h"

namespace hotpack::bench {
namespace {

// A forward and backward pass: outputs nest like brackets, workspaces last one layer.
Instance TrainingInstance(int layers) {
  Instance instance;
  for (int layer = 0; layer < layers; ++layer) {
    const Clock end = 4 * layers;
    instance.blocks.push_back({.size = 512 * (1 + layer * 37 % 101), .residency = {{2 * layer, end - 2 * layer}}});
    instance.blocks.push_back({.size = 512 * (1 + layer * 53 % 211), .residency = {{2 * layer, 2 * layer + 1}}});
    instance.blocks.push_back({.size = 512 * (1 + layer * 29 % 97), .residency = {{end - 2 * layer - 2, end - 2 * layer}}});
  }
  return instance;
}

// Random sizes and lifetimes: harder than anything a training job asks for.
Instance RandomInstance(int blocks) {
  std::mt19937_64 random(1);
  Instance instance;
  for (int i = 0; i < blocks; ++i) {
    const auto begin = static_cast<Clock>(random() % static_cast<uint64_t>(blocks));
    const auto length = static_cast<Clock>(1 + random() % static_cast<uint64_t>(1 + blocks / 10));
    instance.blocks.push_back(
        {.size = static_cast<Bytes>(512 * (1 + random() % 4096)), .residency = {{begin, begin + length}}});
  }
  return instance;
}

void Solve(benchmark::State& state, const Instance& instance, Algorithm algorithm) {
  PackResult result;
  for (auto _ : state) {
    result = Pack(instance, {.algorithm = algorithm, .time_limit_ns = 200'000'000});
    benchmark::DoNotOptimize(result.placement.height);
  }
  if (result.status != PackStatus::kOk) {
    state.SkipWithError(PackStatusText(result.status));
    return;
  }
  const std::string fault = Validate(instance, result.placement);
  if (!fault.empty()) {
    state.SkipWithError(fault.c_str());
    return;
  }
  state.counters["blocks"] = static_cast<double>(instance.blocks.size());
  state.counters["ratio"] = static_cast<double>(result.placement.height) / static_cast<double>(result.lower_bound);
}

void BestFitTraining(benchmark::State& state) {
  Solve(state, TrainingInstance(static_cast<int>(state.range(0))), Algorithm::kBestFit);
}
BENCHMARK(BestFitTraining)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

void AutoTraining(benchmark::State& state) {
  Solve(state, TrainingInstance(static_cast<int>(state.range(0))), Algorithm::kAuto);
}
BENCHMARK(AutoTraining)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

void BestFitRandom(benchmark::State& state) {
  Solve(state, RandomInstance(static_cast<int>(state.range(0))), Algorithm::kBestFit);
}
BENCHMARK(BestFitRandom)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

void AutoRandom(benchmark::State& state) {
  Solve(state, RandomInstance(static_cast<int>(state.range(0))), Algorithm::kAuto);
}
BENCHMARK(AutoRandom)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hotpack::bench

BENCHMARK_MAIN();
