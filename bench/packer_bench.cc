// hotpack's packer and the heuristics of other systems on the same instances: the time of a solve, and the height over
// the lower bound (counter `ratio`).
#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "bench/benchmark_main.h"
#include "bench/generated_instances.h"
#include "bench/heuristics.h"
#include "bench/models/networks.h"
#include "packer/bounds.h"
#include "packer/validator.h"

namespace hotpack::bench {
namespace {

// An instance, made when the first benchmark on it runs, and its lower bound.
struct Case {
  std::string name;
  std::function<Instance(int64_t blocks)> make;
  int64_t blocks;  // 0: all of the instance
  Instance instance = {};
  Bytes lower_bound = 0;

  void Make() {
    if (!instance.blocks.empty()) return;
    instance = make(blocks);
    lower_bound = LowerBound(instance);
  }
};

void Solve(benchmark::State& state, Case& which, const Heuristic& heuristic) {
  which.Make();
  Placement placement;
  for (auto _ : state) {
    placement = heuristic.pack(which.instance);
    benchmark::DoNotOptimize(placement.offsets.data());
  }
  const std::string fault = Validate(which.instance, placement);
  if (!fault.empty()) {
    state.SkipWithError(fault.c_str());
    return;
  }
  const auto blocks = static_cast<double>(which.instance.blocks.size());
  state.counters["blocks"] = blocks;
  state.counters["ratio"] = static_cast<double>(placement.height) / static_cast<double>(which.lower_bound);
  state.counters["s_a_block"] =
      benchmark::Counter(blocks, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void Enroll(const std::shared_ptr<Case>& which, int64_t blocks) {
  for (const Heuristic& heuristic : Heuristics()) {
    if (blocks > heuristic.most_blocks) continue;
    const std::string name = which->name + "/" + heuristic.name;
    benchmark::RegisterBenchmark(name.c_str(), [which, &heuristic](benchmark::State& state) {
      Solve(state, *which, heuristic);
    })->Unit(benchmark::kMillisecond);
  }
}

void EnrollAll(bool smoke) {
  const auto generated = [](const char* name, Instance (*make)(int64_t, uint64_t), int64_t blocks) {
    const auto first = [make](int64_t number) { return make(number, 1); };
    Enroll(std::make_shared<Case>(Case{std::string(name) + " " + std::to_string(blocks), first, blocks}), blocks);
  };
  for (int64_t blocks : {int64_t{100}, int64_t{1'000}, int64_t{10'000}, int64_t{100'000}, int64_t{1'000'000}}) {
    if (smoke && blocks > 100) break;
    generated("training", TrainingInstance, blocks);
    generated("random", RandomInstance, blocks);
    if (blocks <= 10'000) generated("cut", CutInstance, blocks);
  }
  const auto network = [](const char* name, Instance (*make)(int64_t)) {
    Enroll(std::make_shared<Case>(Case{name, make, 0}), 0);
  };
  network("AlexNet, batch 32", [](int64_t) { return AlexNet(32).Training(); });
  network("GoogLeNet, batch 32", [](int64_t) { return GoogLeNet(32).Training(); });
}

}  // namespace
}  // namespace hotpack::bench

int main(int argc, char** argv) { return hotpack::bench::RunBenchmarks(argc, argv, hotpack::bench::EnrollAll); }
