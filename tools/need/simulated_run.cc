#include "tools/need/simulated_run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "nlohmann/json.hpp"
#include "runtime/persist/stats_file.h"
#include "tools/need/read_text.h"
#include "tools/run/run_program.h"

namespace hotpack {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Restores the environment, which a run changes for its program.
class EnvironmentScope {
 public:
  EnvironmentScope() {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) before_.push_back(*entry);
  }
  ~EnvironmentScope() {
    clearenv();
    for (const std::string& entry : before_) {
      const size_t end = entry.find('=');
      if (end != std::string::npos) setenv(entry.substr(0, end).c_str(), entry.substr(end + 1).c_str(), 1);
    }
  }
  EnvironmentScope(const EnvironmentScope&) = delete;
  EnvironmentScope& operator=(const EnvironmentScope&) = delete;

 private:
  std::vector<std::string> before_;
};

// The first process that requests memory has the plain name; others append their process id.
std::string PathOf(const std::string& path, int pid) {
  const std::string own = path + "." + std::to_string(pid);
  std::error_code error;
  return fs::exists(own, error) ? own : path;
}

void ReadRecording(const std::string& path, SimulatedRun* run) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    run->no_recording = "its recording could not be written";
    return;
  }
  absl::StatusOr<TraceFile> file = LoadTrace(path);
  if (!file.ok()) {
    run->no_recording = "its recording cannot be read: " + std::string(file.status().message());
  } else if (file->origin.end == TraceOrigin::End::kDiskFull || file->origin.end == TraceOrigin::End::kLimitReached) {
    run->no_recording = file->origin.end == TraceOrigin::End::kDiskFull
                            ? "the disk was full, so its recording ends early"
                            : "its recording reached the size limit (HOTPACK_TRACE_LIMIT_MB)";
  } else if (fs::exists(path + ".2", error)) {
    run->no_recording = "it used more than one device or context: run it once a device";
  } else {
    run->recording = *std::move(file);
  }
}

// What the program's Python part noted (python/hotpack/_need.py).
void ReadNotes(const std::string& path, SimulatedRun* run) {
  const Json notes = Json::parse(ReadText(path), nullptr, false);
  if (!notes.is_object()) return;
  run->steps = notes.value("steps", uint64_t{0});
  run->ended = notes.value("ended", false);
  for (const Json& read : notes.value("reads", Json::array())) {
    run->reads.push_back({read.value("line", std::string()), read.value("times", uint64_t{0})});
  }
  std::stable_sort(run->reads.begin(), run->reads.end(),
                   [](const ValueRead& a, const ValueRead& b) { return a.times > b.times; });
}

void ReadResults(const std::string& directory, const std::string& trace, SimulatedRun* run) {
  std::vector<ProcessStats> processes = ReadStatsDirectory(directory);
  std::erase_if(processes, [](const ProcessStats& process) { return process.stats.requests == 0; });
  run->processes = processes.size();
  if (processes.empty()) {
    run->no_recording = "no process asked for device memory";
    return;
  }
  const ProcessStats& most = processes.front();
  run->passed_through = most.stats.passed_through;
  ReadRecording(PathOf(trace, most.pid), run);
  ReadNotes(directory + "/notes." + std::to_string(most.pid), run);
  run->graph = ReadText(PathOf(directory + "/graph.json", most.pid));
}

// As torchrun does on one machine. Nobody listens at the address.
void SetRank(int rank, int ranks) {
  const std::string own = std::to_string(rank), all = std::to_string(ranks);
  setenv("HOTPACK_NEED_RANKS", all.c_str(), 1);
  for (const char* name : {"RANK", "LOCAL_RANK"}) setenv(name, own.c_str(), 1);
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "SIMGPU_DEVICES"}) setenv(name, all.c_str(), 1);
  for (const char* name : {"GROUP_RANK", "ROLE_RANK"}) setenv(name, "0", 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", "29500", 1);
}

}  // namespace

std::optional<SimulatedRun> RunSimulated(const SimulatedRunOptions& options, int* code) {
  const EnvironmentScope scope;
  const TemporaryDirectory directory;
  RunOptions run_options = options.run;
  run_options.simulate = run_options.output_to_stderr = true;
  run_options.trace = directory.path() + "/job.trace";
  if (!options.no_graph) run_options.graph = directory.path() + "/graph.json";
  constexpr uint64_t kFirstGraph = 2, kUsualGraph = 3;  // the first step makes the optimizer's state
  run_options.graph_step = static_cast<int>(options.steps == 0 ? kUsualGraph : std::max(kFirstGraph, options.steps));
  setenv("HOTPACK_NEED_STEPS", std::to_string(options.steps).c_str(), 1);
  setenv("HOTPACK_NEED_NOTES", (directory.path() + "/notes").c_str(), 1);
  setenv("SIMGPU_CHECK", "0", 0);  // need asks for sizes, not whether an allocator is right
  if (!options.keep_values) setenv("SIMGPU_VALUES", "small", 0);
  if (options.ranks > 0) SetRank(options.rank, options.ranks);
  SimulatedRun run;
  run.command = run_options.command;
  const auto begin = std::chrono::steady_clock::now();
  const std::optional<FinishedProgram> finished = RunProgram(run_options, directory.path(), code);
  if (!finished) return std::nullopt;
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  run.code = finished->code;
  ReadResults(directory.path(), run_options.trace, &run);
  return run;
}

}  // namespace hotpack
