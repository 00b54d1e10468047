// scale_bench: an iteration of n blocks from its first request until it is served by script, step by step, with the
// time and the host's memory of each. bench/cost runs it for several n.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/counted_heap.h"
#include "bench/iteration.h"
#include "bench/unbacked_device_memory.h"
#include "packer/pack.h"
#include "packer/validator.h"
#include "runtime/engine/engine.h"
#include "runtime/persist/plan_file.h"
#include "runtime/script/follower.h"

namespace hotpack::bench {
namespace {

struct Settings {
  uint32_t blocks = 1'000'000;
  std::string lives = "nested";
  bool marks = true;
  // The most iterations until the first one that is served entirely by script.
  int iterations = 12;
  uint64_t window = EngineOptions{}.window;
  bool json = false;
};

// The costs of one step.
struct Step {
  std::string name;
  double wall_s = 0;
  double cpu_s = 0;       // of all threads of the process
  int64_t kept = 0;       // additional heap bytes afterwards
  int64_t heap_peak = 0;  // most additional heap bytes during the step
  int64_t resident = 0;   // most resident bytes of the process during the step
  double by_script = 0;   // share of its requests; 0: no requests
};

double Seconds(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Step Measure(std::string name, const std::function<void()>& work) {
  const int64_t before = CountedHeap().live;
  ResetHeapPeak();
  ResetResidentPeak();
  const double wall = Seconds(CLOCK_MONOTONIC), cpu = Seconds(CLOCK_PROCESS_CPUTIME_ID);
  work();
  Step step{.name = std::move(name)};
  step.cpu_s = Seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  step.wall_s = Seconds(CLOCK_MONOTONIC) - wall;
  step.kept = CountedHeap().live - before;
  step.heap_peak = CountedHeap().peak - before;
  step.resident = Resident().peak;
  return step;
}

struct Outcome {
  std::vector<Step> steps;
  std::string fault;     // empty: none
  double ratio = 0;      // height / lower bound of the plan in force
  double by_script = 0;  // share of the requests in the timed iterations
  // Iterations before the first one served entirely by script.
  int steady_after = -1;
  uint64_t plan_file_bytes = 0;
  bool plan_file_read = false;
};

// Measures each part by itself, on the calling thread.
void MeasureParts(const Sequence& sequence, Outcome* outcome) {
  std::vector<Step>& steps = outcome->steps;
  std::optional<Profile> profile;
  steps.push_back(Measure("profile", [&] { profile = ProfileOf(sequence); }));
  std::vector<uint32_t> index;
  std::optional<Instance> instance;
  steps.push_back(Measure("instance", [&] { instance = ToInstance(*profile, &index); }));
  PackResult packed;
  steps.push_back(Measure("pack, best fit", [&] {
    packed = Pack(*instance, {.algorithm = Algorithm::kBestFit, .time_limit_ns = INT64_MAX / 2});
  }));
  outcome->fault =
      packed.status != PackStatus::kOk ? PackStatusText(packed.status) : Validate(*instance, packed.placement);
  if (!outcome->fault.empty()) return;
  steps.push_back(Measure("pack, auto", [&] { Pack(*instance, {}); }));
  std::shared_ptr<const Script> script;
  steps.push_back(Measure("compile", [&] {
    script = std::make_shared<const Script>(
        CompileScript(*profile, index, packed.placement.offsets, {}, 0, packed.lower_bound));
  }));
  Follower follower;
  steps.push_back(Measure("follower", [&] { follower.Start(script, 0, 0, 0); }));
  SavedPlan plan, read;
  plan.scripts = {script};
  std::vector<uint8_t> bytes;
  steps.push_back(Measure("encode a plan", [&] { bytes = EncodePlan(plan); }));
  PlanFileStatus status = PlanFileStatus::kOk;
  steps.push_back(Measure("read a plan", [&] { status = DecodePlan(bytes.data(), bytes.size(), &read); }));
  outcome->plan_file_bytes = bytes.size();
  outcome->plan_file_read = status == PlanFileStatus::kOk && bytes.size() <= kMaxPlanFileBytes;
}

bool Play(const Sequence& sequence, Engine* engine, std::vector<DeviceAddress>* addresses) {
  for (const Call& call : sequence.calls) {
    DeviceAddress& address = (*addresses)[call.slot];
    const EngineStatus status =
        call.bytes != 0 ? engine->Allocate(call.bytes, 0, &address) : engine->Release(address, 0);
    if (status != EngineStatus::kOk) return false;
  }
  return true;
}

// Measures the engine: it observes, plans in the background while this thread waits, and follows the script.
void MeasureEngine(const Settings& settings, const Sequence& sequence, Outcome* outcome) {
  std::vector<Step>& steps = outcome->steps;
  std::vector<DeviceAddress> addresses(sequence.slots);
  UnbackedDeviceMemory memory(uint64_t{80} << 30);
  EngineOptions options;
  options.window = settings.window;
  Engine engine(&memory, options);
  bool played = true;
  const auto play = [&] { played = played && Play(sequence, &engine, &addresses); };
  hotpack_stats before = {}, after = {};
  for (int i = 0; i < settings.iterations && outcome->steady_after < 0; ++i) {
    if (settings.marks) engine.Mark();
    before = engine.Stats();
    steps.push_back(Measure("iteration " + std::to_string(i + 1), play));
    after = engine.Stats();
    steps.back().by_script = static_cast<double>(after.planned - before.planned) / sequence.slots;
    if (after.planned - before.planned == sequence.slots) outcome->steady_after = i;
    steps.push_back(Measure("planning after it", [&] { engine.WaitPlan(-1); }));
  }
  if (!played) outcome->fault = "a request failed";
  if (!played || outcome->steady_after < 0) return;
  constexpr int kServed = 3;
  before = engine.Stats();
  for (int i = 0; i < kServed; ++i) {
    if (settings.marks) engine.Mark();
    const uint64_t planned = engine.Stats().planned;
    steps.push_back(Measure("served", play));
    steps.back().by_script = static_cast<double>(engine.Stats().planned - planned) / sequence.slots;
    engine.WaitPlan(-1);
  }
  after = engine.Stats();
  outcome->by_script =
      static_cast<double>(after.planned - before.planned) / static_cast<double>(after.requests - before.requests);
  outcome->ratio = static_cast<double>(after.plan_height) / static_cast<double>(after.plan_lower_bound);
  std::shared_ptr<const SavedPlan> saved;
  steps.push_back(Measure("save", [&] { saved = engine.PlanToSave(); }));
}

void PrintText(const Settings& settings, const Outcome& outcome) {
  const double n = settings.blocks;
  printf("%u blocks, %s lives\n%-18s %10s %10s %10s %12s %12s %12s %10s\n", settings.blocks, settings.lives.c_str(),
         "step", "wall s", "cpu s", "cpu ns/blk", "kept B/blk", "peak B/blk", "resident MB", "by script");
  for (const Step& step : outcome.steps) {
    printf("%-18s %10.4f %10.4f %10.1f %12.1f %12.1f %12.1f %9.2f%%\n", step.name.c_str(), step.wall_s, step.cpu_s,
           1e9 * step.cpu_s / n, static_cast<double>(step.kept) / n, static_cast<double>(step.heap_peak) / n,
           static_cast<double>(step.resident) / 1e6, 100 * step.by_script);
  }
  printf("plan file: %.1f bytes a block, %s\n", static_cast<double>(outcome.plan_file_bytes) / n,
         outcome.plan_file_read ? "read again" : "refused");
  if (outcome.steady_after < 0) {
    printf("no iteration was served by script as a whole\n");
  } else {
    printf("served by script from iteration %d on: %.4f %% of the requests; height / lower bound %.6f\n",
           outcome.steady_after + 1, 100 * outcome.by_script, outcome.ratio);
  }
}

void PrintJson(const Settings& settings, const Outcome& outcome) {
  nlohmann::ordered_json json = {{"program", "scale_bench"},
                                 {"blocks", settings.blocks},
                                 {"lives", settings.lives},
                                 {"marks", settings.marks},
                                 {"window", settings.window}};
  json["steps"] = nlohmann::ordered_json::array();
  for (const Step& step : outcome.steps) {
    json["steps"].push_back({{"name", step.name},
                             {"wall_s", step.wall_s},
                             {"cpu_s", step.cpu_s},
                             {"kept_bytes", step.kept},
                             {"peak_bytes", step.heap_peak},
                             {"resident_bytes", step.resident},
                             {"by_script", step.by_script}});
  }
  json["plan_file_bytes"] = outcome.plan_file_bytes;
  json["plan_file_read"] = outcome.plan_file_read;
  json["steady_after"] = outcome.steady_after;
  json["by_script"] = outcome.by_script;
  json["ratio"] = outcome.ratio;
  printf("%s\n", json.dump().c_str());
}

int Main(int argc, char** argv) {
  Settings settings;
  bool unmarked = false, smoke = false;
  CLI::App app("An iteration of n blocks, observed, planned and followed: time and the host's memory", "scale_bench");
  app.add_option("--blocks", settings.blocks, "Requests an iteration")
      ->check(CLI::Range(4, 4'000'000))
      ->capture_default_str();
  app.add_option("--lives", settings.lives, "nested (a forward and backward pass) or short (time steps)")
      ->check(CLI::IsMember({"nested", "short"}))
      ->capture_default_str();
  app.add_flag("--unmarked", unmarked, "The iteration is to be found: the program marks none");
  app.add_option("--window", settings.window, "Requests that the engine remembers")->capture_default_str();
  app.add_option("--iterations", settings.iterations, "At most, until one is served by script as a whole")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--smoke", smoke, "1,000 blocks");
  app.add_flag("--json", settings.json, "One JSON object");
  CLI11_PARSE(app, argc, argv);
  settings.marks = !unmarked;
  if (smoke) settings.blocks = 1'000;
  const Sequence sequence = MakeIteration(settings.blocks, settings.lives == "nested" ? Lives::kNested : Lives::kShort);
  Outcome outcome;
  MeasureParts(sequence, &outcome);
  if (outcome.fault.empty()) MeasureEngine(settings, sequence, &outcome);
  settings.json ? PrintJson(settings, outcome) : PrintText(settings, outcome);
  if (outcome.fault.empty()) return 0;
  fprintf(stderr, "scale_bench: %s\n", outcome.fault.c_str());
  return 1;
}

}  // namespace
}  // namespace hotpack::bench

int main(int argc, char** argv) { return hotpack::bench::Main(argc, argv); }
