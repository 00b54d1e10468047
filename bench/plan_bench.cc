// The cost of beginning with a saved plan: reading and checking a file of n blocks, and writing one.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/benchmark_main.h"
#include "bench/iteration.h"
#include "runtime/persist/plan_file.h"

namespace hotpack::bench {
namespace {

// Returns a plan of one script, packed once for all benchmarks.
const SavedPlan& PlanOf(uint32_t blocks, Lives lives) {
  static SavedPlan plan;
  static uint32_t made_blocks = 0;
  static Lives made_lives = lives;
  if (blocks == made_blocks && lives == made_lives) return plan;
  plan = {};
  plan.scripts = {ScriptOf(ProfileOf(MakeIteration(blocks, lives)))};
  plan.program = "/usr/bin/train";
  plan.device = "a device";
  plan.device_bytes = uint64_t{80} << 30;
  plan.chunk_bytes = uint64_t{2} << 20;
  made_blocks = blocks;
  made_lives = lives;
  return plan;
}

void Report(benchmark::State& state, double blocks, uint64_t bytes) {
  state.counters["bytes_a_block"] = static_cast<double>(bytes) / blocks;
  state.counters["s_a_block"] =
      benchmark::Counter(blocks, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void Encode(benchmark::State& state, Lives lives) {
  const SavedPlan& plan = PlanOf(static_cast<uint32_t>(state.range(0)), lives);
  std::vector<uint8_t> bytes;
  for (auto _ : state) {
    bytes = EncodePlan(plan);
    benchmark::DoNotOptimize(bytes.data());
  }
  Report(state, static_cast<double>(state.range(0)), bytes.size());
}

void Decode(benchmark::State& state, Lives lives) {
  const SavedPlan& plan = PlanOf(static_cast<uint32_t>(state.range(0)), lives);
  const std::vector<uint8_t> bytes = EncodePlan(plan);
  SavedPlan read;
  for (auto _ : state) {
    if (DecodePlan(bytes.data(), bytes.size(), &read) != PlanFileStatus::kOk) {
      state.SkipWithError("the plan is refused");
      return;
    }
    benchmark::DoNotOptimize(read.scripts.data());
  }
  if (read.scripts.front()->successors != plan.scripts.front()->successors)
    state.SkipWithError("another plan was read");
  Report(state, static_cast<double>(state.range(0)), bytes.size());
}

// Loads a file that is in the system's page cache.
void Load(benchmark::State& state, Lives lives) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("hotpack-bench-" + std::to_string(getpid()) + ".plan");
  if (WritePlanFile(path.c_str(), PlanOf(static_cast<uint32_t>(state.range(0)), lives)) != 0) {
    state.SkipWithError("the plan cannot be written");
    return;
  }
  SavedPlan read;
  for (auto _ : state) {
    if (ReadPlanFile(path.c_str(), &read) != PlanFileStatus::kOk) {
      state.SkipWithError("the plan is refused");
      break;
    }
    benchmark::DoNotOptimize(read.scripts.data());
  }
  Report(state, static_cast<double>(state.range(0)), std::filesystem::file_size(path));
  unlink(path.c_str());
}

void Enroll(bool smoke) {
  const auto add = [smoke](const char* name, void (*run)(benchmark::State&, Lives), Lives lives) {
    benchmark::internal::Benchmark* one =
        benchmark::RegisterBenchmark(name, [run, lives](benchmark::State& state) { run(state, lives); });
    one->Unit(benchmark::kMillisecond)->ArgName("blocks");
    for (int64_t blocks : {1'000, 10'000, 100'000, 1'000'000}) {
      if (!smoke || blocks <= 1'000) one->Arg(blocks);
    }
  };
  add("Encode/nested", Encode, Lives::kNested);
  add("Decode/nested", Decode, Lives::kNested);
  add("Load/nested", Load, Lives::kNested);
  add("Load/short", Load, Lives::kShort);
}

}  // namespace
}  // namespace hotpack::bench

int main(int argc, char** argv) { return hotpack::bench::RunBenchmarks(argc, argv, hotpack::bench::Enroll); }
