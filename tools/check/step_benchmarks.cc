// The figures of the benchmarks of bench/, which time hotpack's own work and, for comparison, the driver's.
#include <filesystem>
#include <optional>

#include "tools/check/google_benchmark.h"
#include "tools/check/steps.h"

namespace hotpack::check {
namespace {

constexpr char kGroup[] = "benchmarks";

// A Google Benchmark program.
struct Program {
  const char* name;
  const char* tiny;  // filters; "": all of it
  const char* quick;
};

constexpr Program kPrograms[] = {
    {"serving_bench", "OnScriptPair|ScriptThreads|MutexPair|MallocPair|BestFitMapPair", ""},
    {"hook_bench", "", ""},
    {"startup_bench", "", ""},
    {"recorder_bench", "AppendPair/live:1/", ""},
    {"plan_bench", "", "blocks:(1000|10000)$"},
    {"packer_bench", "training 100/hotpack",
     "training 1000/(hotpack|first-fit|TFLite|XLA|ONNX)|AlexNet.*/hotpack best-fit"},
};
constexpr char kPackerFull[] = "(training|random|cut) 10*/|AlexNet|GoogLeNet";

// {program, dividend, divisor}: how many times longer the first takes than hotpack, in the same process.
constexpr const char* kRatios[][3] = {
    {"serving_bench", "MutexPair", "OnScriptPair"},
    {"serving_bench", "MallocPair", "OnScriptPair"},
    {"serving_bench", "BestFitMapPair", "OnScriptPair"},
    {"startup_bench", "CUDA/alone", "CUDA/preloaded"},
};

void AddRatio(const Step& dividend, const Step& divisor, const char* above, const char* below, const std::string& name,
              Step* to) {
  const Figure *a = FindFigure(dividend, above), *b = FindFigure(divisor, below);
  if (a != nullptr && b != nullptr && b->median > 0) to->AddFigure(name, "ratio", {a->median / b->median});
}

// Returns the programs' library path; nothing if they cannot be started. Uses the machine's C++ library if it is new
// enough. Else it uses the kit's, which needs a newer glibc than the other programs.
std::optional<std::string> FindLibraries(const Session& session, const std::string& program) {
  const std::string own = session.kit().BenchmarkLibraries();
  for (const std::string& path : {own, own + ":" + own + "/cxx"}) {
    std::map<std::string, std::string> environment = session.environment();
    environment["LD_LIBRARY_PATH"].insert(0, path + ":");
    const std::vector<std::string> command = {session.kit().Program(program), "--benchmark_list_tests"};
    if (RunChild(command, environment, 30, session.scratch()).code != 127) return path;  // 127: the loader's exit code
  }
  return std::nullopt;
}

Job MakeJob(const Session& session, const std::string& program, const std::string& suffix) {
  Job job;
  job.name = program + suffix;
  job.command = {session.kit().Program(program)};
  job.limit = session.full() ? 600 : 90;
  return job;
}

Step* RunProgram(Session& session, const Program& program, bool hotpack, const std::string& libraries) {
  const std::string name = program.name, file = session.scratch() + "/benchmark.json";
  std::error_code error;
  std::filesystem::remove(file, error);
  Job job = MakeJob(session, name, name != "hook_bench" ? "" : hotpack ? "/hotpack" : "/without");
  job.hotpack = hotpack;
  job.library_path = libraries;
  job.command.insert(job.command.end(), {"--benchmark_out=" + file, "--benchmark_out_format=json"});
  if (session.tiny()) {
    job.command.push_back("--smoke");
  } else {
    job.command.push_back(session.full() ? "--benchmark_min_time=0.2" : "--benchmark_min_time=0.03");
    job.command.push_back(session.full() ? "--benchmark_repetitions=9" : "--benchmark_repetitions=3");
  }
  std::string filter = session.tiny() ? program.tiny : session.full() ? "" : program.quick;
  if (session.full() && name == "packer_bench") filter = kPackerFull;
  if (!filter.empty()) job.command.push_back("--benchmark_filter=" + filter);
  if (name == "startup_bench" && !session.simulated()) job.command.push_back("--real-device");
  Step* step = session.Run(kGroup, job);
  if (step == nullptr || step->timed_out || Interrupted() != 0) return nullptr;
  AddBenchmarks(file, step);
  for (const auto& [of, dividend, divisor] : kRatios) {
    if (name == of) AddRatio(*step, *step, dividend, divisor, std::string(dividend) + " over " + divisor, step);
  }
  return step;
}

// The driver's functions, without hotpack and with it.
void RunHooks(Session& session, const Program& program, const std::string& libraries) {
  const Step* without = RunProgram(session, program, false, libraries);
  const Step* with = RunProgram(session, program, true, libraries);
  if (without == nullptr || with == nullptr) return;
  Step* ratios = session.Add(kGroup, "hook_bench/ratios");
  for (const char* pair : {"DriverPair", "DriverPairAsync"}) {
    AddRatio(*without, *with, pair, pair, std::string(pair) + ", driver over hotpack", ratios);
  }
}

// Measures requests of several threads at once.
void RunThreads(Session& session) {
  for (const std::string workload : {"script", "mixed"}) {
    Job job = MakeJob(session, "request_threads", "/" + workload);
    job.command.insert(job.command.end(), {"--json", "--workload", workload, "--threads", "1,2,4,8"});
    job.command.insert(job.command.end(), {"--seconds", session.tiny() ? "0.02" : "0.1"});
    job.command.insert(job.command.end(), {"--runs", session.tiny() ? "1" : session.full() ? "9" : "3"});
    job.tells_findings = true;
    session.Run(kGroup, job);
  }
}

}  // namespace

void RunBenchmarks(Session& session) {
  for (const Program& program : kPrograms) {
    if (!session.kit().Has(program.name)) {
      session.Skip(kGroup, program.name, std::string("bin/") + program.name + " is not here");
      continue;
    }
    const std::optional<std::string> libraries = FindLibraries(session, program.name);
    if (Interrupted() != 0) return;
    if (!libraries) {
      session.Skip(kGroup, program.name,
                   "its libraries are not here: Google Benchmark, and a C++ library of GCC 12 or newer");
    } else if (std::string(program.name) == "hook_bench") {
      RunHooks(session, program, *libraries);
    } else {
      RunProgram(session, program, false, *libraries);
    }
  }
  if (session.kit().Has("request_threads")) {
    RunThreads(session);
  } else {
    session.Skip(kGroup, "request_threads", "bin/request_threads is not here");
  }
}

}  // namespace hotpack::check
