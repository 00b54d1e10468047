// Kernel times: runs a probe and a training program under `hotpack run --cupti` and checks their recordings.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "profiler/trace_file.h"
#include "tools/check/steps.h"

namespace hotpack::check {
namespace {

constexpr char kGroup[] = "collectors";
constexpr double kTimedShare = 0.99;  // work captured into a graph that was never launched has no times

std::string Percent(size_t part, size_t whole) {
  char text[64];
  snprintf(text, sizeof text, "%.2f %% of %zu",
           whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0, whole);
  return text;
}

// Runs the program under hotpack with a recording and, if `iterations` is not empty, kernel times. Returns its step,
// and the path of the recording.
Step* RunRecorded(Session& session, Job job, const std::string& iterations, std::string* trace) {
  *trace = session.scratch() + "/collectors.trace";
  std::error_code error;
  std::filesystem::remove(*trace, error);
  job.hotpack = true;
  job.hotpack_options = {"--trace", *trace};
  if (!iterations.empty()) job.hotpack_options.insert(job.hotpack_options.end(), {"--cupti", iterations});
  return session.Run(kGroup, job);
}

// Checks the recorded launches: all have a name, nearly all have times, and these are within the run.
void CheckLaunches(const std::string& trace, Step* step) {
  const auto loaded = LoadTrace(trace);
  if (!loaded.ok()) {
    step->Check(false, "recording", "a whole recording", std::string(loaded.status().message()));
    return;
  }
  const Notes& notes = loaded->notes;
  const size_t launches = notes.launches.size();
  size_t named = 0, timed = 0, right = 0;
  std::set<NameOrdinal> kernels;
  const uint64_t events_end = loaded->trace.events.empty() ? 0 : loaded->trace.events.back().time_ns;
  constexpr uint64_t kClocks = 1'000'000;  // ns: tolerance of CUPTI's comparison of the device's clock with the host's
  constexpr uint64_t kAfter = 60'000'000'000;  // ns: work may end after the last request
  for (const Launch& launch : notes.launches) {
    if (launch.name != kNoName) kernels.insert(launch.name);
    named += launch.name != kNoName ? 1 : 0;
    if (launch.end_ns == 0) continue;
    ++timed;
    right += launch.start_ns < launch.end_ns && launch.start_ns + kClocks >= launch.time_ns &&
                     launch.end_ns <= events_end + kAfter
                 ? 1
                 : 0;
  }
  step->Check(launches > 0, "launches", "launches are recorded", std::to_string(launches));
  step->Check(named == launches, "names", "every launch has a name",
              Percent(named, launches) + ", " + std::to_string(kernels.size()) + " names");
  step->Check(timed >= static_cast<size_t>(kTimedShare * static_cast<double>(launches)), "times", "99 % have times",
              Percent(timed, launches));
  step->Check(right == timed, "order", "begins before it ends, and not before it was launched", Percent(right, timed));
}

// Checks that another tool works after hotpack: gpu_probe is that tool.
void CheckDetach(Session& session) {
  Job job;
  job.name = "gpu_probe/cupti/detach";
  job.command = {session.kit().Program("gpu_probe"), "--case", "cupti", "--time-limit", "55"};
  if (!session.full()) job.command.push_back("--quick");
  job.tells_findings = true;
  std::string trace;
  if (Step* step = RunRecorded(session, job, "3", &trace); step != nullptr && !step->Failed())
    CheckLaunches(trace, step);
}

// The same run with a recording alone, and with times of every launch.
void CheckTraining(Session& session) {
  Job job;
  job.command = {session.kit().Program("train_mlp")};
  std::vector<double> plain, timed;
  const int rounds = session.tiny() ? 1 : session.full() ? 5 : 2;
  for (int round = 0; round < rounds; ++round) {
    std::string trace;
    const std::string suffix = rounds > 1 ? "/round" + std::to_string(round) : "";
    job.name = "train_mlp/recorded" + suffix;
    if (const Step* step = RunRecorded(session, job, "", &trace); step != nullptr && !step->Failed())
      plain.push_back(step->seconds);
    job.name = "train_mlp/cupti" + suffix;
    Step* step = RunRecorded(session, job, "all", &trace);
    if (step == nullptr || step->Failed()) continue;
    timed.push_back(step->seconds);
    CheckLaunches(trace, step);
  }
  if (plain.empty() || timed.empty()) return;
  Step* rates = session.Add(kGroup, "train_mlp/cost");
  rates->AddFigure("recorded", "s", plain);
  rates->AddFigure("with_kernel_times", "s", timed);
}

}  // namespace

void RunCollectors(Session& session) {
  std::error_code error;
  std::string reason;
  if (session.simulated()) {
    reason = "CUPTI knows no simulated device";
  } else if (!std::filesystem::exists(session.kit().root + "/lib/libhotpack_cupti.so.0", error)) {
    reason = "lib/libhotpack_cupti.so.0 is not here: CUPTI's headers were missing when this was built";
  }
  if (!reason.empty()) {
    session.Skip(kGroup, "cupti", reason);
    return;
  }
  if (session.kit().Has("gpu_probe")) {
    CheckDetach(session);
  } else {
    session.Skip(kGroup, "gpu_probe/cupti", "bin/gpu_probe is not here");
  }
  if (session.kit().Has("train_mlp")) {
    CheckTraining(session);
  } else {
    session.Skip(kGroup, "train_mlp", "bin/train_mlp is not here");
  }
}

}  // namespace hotpack::check
