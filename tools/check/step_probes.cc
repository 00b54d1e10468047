#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "tools/check/probe_runs.h"
#include "tools/check/steps.h"

namespace hotpack::check {
namespace {

constexpr char kGroup[] = "probes";

// Returns true for cases whose result depends on whether the arena is one cuMemAlloc or mapped chunks.
bool DependsOnArena(const std::string& name) {
  constexpr std::array<std::string_view, 5> kCases = {"arena", "streams", "streams_per_thread", "coverage", "capture"};
  return std::find(kCases.begin(), kCases.end(), name) != kCases.end();
}

Job ProbeJob(const Session& session, const std::string& program, const std::string& name, double limit) {
  Job job;
  job.limit = limit;
  job.tells_findings = true;
  // A little less than the job's limit, so that the program still prints its findings.
  const int own_limit = std::max(static_cast<int>(job.limit) - (job.limit > 20 ? 5 : 1), 1);
  job.command = {session.kit().Program(program), "--case", name, "--time-limit", std::to_string(own_limit)};
  if (!session.full()) job.command.push_back("--quick");
  std::string directories;
  for (const std::string& directory : session.library_directories()) {
    directories += (directories.empty() ? "" : ":") + directory;
  }
  // The simulated device does not work with real libraries.
  if (!directories.empty() && !session.simulated()) {
    job.command.insert(job.command.end(), {"--library-path", directories});
  }
  return job;
}

}  // namespace

// The first word of each line of --list.
std::vector<std::string> ProbeCases(Session& session, const std::string& group, const std::string& program) {
  const Outcome outcome =
      RunChild({session.kit().Program(program), "--list"}, session.environment(), 30, session.scratch());
  std::vector<std::string> names;
  std::istringstream lines(outcome.code == 0 ? outcome.out : "");
  for (std::string line; std::getline(lines, line);) {
    std::string name;
    if (std::istringstream(line) >> name) names.push_back(name);
  }
  if (names.empty() && Interrupted() == 0) {
    Step* step = session.Add(group, program + "/list");
    step->Check(false, "list", program + " --list names its cases",
                "status " + std::to_string(outcome.code) + "; " + outcome.err.substr(0, 300));
  }
  return names;
}

ProbeSteps RunProbeCase(Session& session, const std::string& group, const std::string& program, const std::string& name,
                        double limit) {
  const auto run = [&](const std::string& how, bool hotpack, const std::string& arena) {
    Job job = ProbeJob(session, program, name, limit);
    job.name = program + "/" + name + "/" + how;
    job.hotpack = hotpack;
    job.arena = arena;
    if (name == "managed" && hotpack) job.environment["HOTPACK_OVERCOMMIT"] = "managed:256";
    return session.Run(group, job);
  };
  ProbeSteps steps;
  // With --tiny the other ways of the static runtime are left out: those of gpu_probe are enough.
  const bool once = session.tiny() && program == "gpu_probe_static_simulated";
  if (!once) steps.without = run("without", false, "");
  if (name == "managed") {  // larger than its small arena: the device is never filled
    steps.hotpack = run("hotpack", true, "plain:128");
  } else if (DependsOnArena(name)) {
    steps.hotpack = run("hotpack-vmm", true, "vmm");
    if (!once) run("hotpack-plain", true, "plain");
  } else {
    steps.hotpack = run("hotpack", true, "");
  }
  return steps;
}

void RunProbes(Session& session) {
  RunPreloadedPytorch(session);
  std::vector<std::string> programs = {"gpu_probe", "gpu_probe_static"};
  if (session.simulated()) {
    session.Skip(kGroup, "gpu_probe_static", "a program with NVIDIA's static runtime needs a real driver");
    programs[1] = "gpu_probe_static_simulated";
  }
  for (const std::string& program : programs) {
    if (!session.kit().Has(program)) {
      session.Skip(kGroup, program, "bin/" + program + " is not here");
      continue;
    }
    for (const std::string& name : ProbeCases(session, kGroup, program)) {
      if (program == "gpu_probe" ? !HasOwnPart(name) : !NeedsOneProgramOnly(name))
        RunProbeCase(session, kGroup, program, name, session.full() ? 120 : 40);
    }
  }
}

}  // namespace hotpack::check
