// gpu_probe: checks hotpack's assumptions on this machine's GPU, or on the simulated device. Prints one JSON object
// (findings.h). Each case has its own process, so that a crash does not end other cases.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <sstream>

#include "tests/gpu/probe.h"

namespace hotpack::gpu {
namespace {

struct Case {
  const char* name;
  void (*run)(Probe&);
  const char* question;
};

constexpr Case kCases[] = {
    {"coverage", RunCoverage, "does every way of asking for memory reach hotpack?"},
    {"libraries", RunLibraries, "do cuBLAS and cuDNN ask hotpack, and compute right?"},
    {"arena", RunArena, "are blocks disjoint, aligned, and do they keep their values?"},
    {"streams", RunStreams, "is memory reused in order across streams?"},
    {"streams_per_thread", RunStreamsPerThread, "... and across per-thread default streams?"},
    {"free_sync", RunFreeSync, "which releases wait for running work?"},
    {"capture", RunCapture, "do stream captures and graphs come through?"},
    {"late_frees", RunLateFrees, "do releases at odd times and wrong releases end well?"},
    {"info", RunInfo, "what do the questions about pointers and memory answer?"},
    {"vmm", RunVmm, "does virtual memory management behave as documented, and what does it cost?"},
    {"managed", RunManaged, "does a sample run that is larger than the arena end well in managed memory?"},
    {"lookups", RunLookups, "does every way of looking up a driver function lead to hotpack?"},
    {"growth_2", RunGrowth2, "what does growing cost, in blocks of 2 MiB,"},
    {"growth_20", RunGrowth20, "... of 20 MiB,"},
    {"growth_64", RunGrowth64, "... of 64 MiB?"},
    {"overlap", RunOverlap, "how much of a copy runs during a kernel on another stream?"},
    {"sharing", RunSharing, "do other processes and devices get at a block: IPC, dma-buf?"},
    {"nearly_full", RunNearlyFull, "do requests on a nearly full device end as documented?"},
#ifdef HOTPACK_GPU_CUPTI
    {"cupti", RunCupti, "is CUPTI free for another tool, at the latest when hotpack has profiled?"},
#endif
};

struct Options {
  const Case* chosen = nullptr;
  std::string child;
  bool list = false;
  bool quick = false;
  int time_limit = 180;  // seconds
  std::vector<std::string> library_path;
};

const Case* FindCase(const std::string& name) {
  for (const Case& c : kCases) {
    if (name == c.name) return &c;
  }
  return nullptr;
}

// Returns an empty string, or the fault.
std::string Take(const std::string& option, const std::string& value, Options* options) {
  if (option == "--case") {
    options->chosen = FindCase(value);
    if (options->chosen == nullptr) return "no case is named '" + value + "' (--list has them)";
  } else if (option == "--child") {
    options->child = value;
  } else if (option == "--time-limit") {
    char* end = nullptr;
    const long seconds = strtol(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0' || seconds < 1 || seconds > 86400) {
      return "--time-limit takes whole seconds from 1 to 86400, not '" + value + "'";
    }
    options->time_limit = static_cast<int>(seconds);
  } else {
    std::istringstream directories(value);
    for (std::string one; std::getline(directories, one, ':');) {
      if (!one.empty()) options->library_path.push_back(one);
    }
  }
  return "";
}

std::string Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--list") {
      options->list = true;
    } else if (option == "--quick") {
      options->quick = true;
    } else if (option == "--case" || option == "--child" || option == "--time-limit" || option == "--library-path") {
      if (i + 1 >= argc) return option + " needs a value";
      const std::string wrong = Take(option, argv[++i], options);
      if (!wrong.empty()) return wrong;
    } else {
      return "unknown option '" + option + "'";
    }
  }
  if (!options->list && options->chosen == nullptr && options->child.empty()) {
    return "usage: gpu_probe --list | --case NAME [--quick] [--time-limit SECONDS] [--library-path DIR[:DIR]...]";
  }
  return "";
}

int Complain(const std::string& line) {
  fprintf(stderr, "gpu_probe: %s\n", line.c_str());
  return 2;
}

int RunCase(const Options& options) {
  // Never destroyed: a time limit or a signal may still be reading it.
  auto* found = new Findings("gpu_probe --case " + std::string(options.chosen->name));
  found->Guard(options.time_limit);
  Probe probe;
  probe.found = found;
  probe.quick = options.quick;
  probe.library_path = options.library_path;
  const std::string name = options.chosen->name;
  try {
    const std::string reason = probe.Prepare();
    if (!reason.empty()) {
      found->Skip(name + ".device", reason);
      return found->Finish();
    }
    options.chosen->run(probe);
    const cudaError_t left = cudaDeviceSynchronize();
    probe.Must(left == cudaSuccess, name + ".end", "no error is left behind", ErrorName(left));
  } catch (const std::exception& failed) {
    probe.Must(false, name + ".calls", "every call that the case needs succeeds", failed.what());
  }
  return found->Finish();
}

}  // namespace
}  // namespace hotpack::gpu

int main(int argc, char** argv) {
  using namespace hotpack::gpu;
  // Kernels do nothing on the simulated device: the values that blocks were filled with are there to be read back.
  setenv("SIMGPU_VALUES", "keep", 0);
  Options options;
  const std::string wrong = Parse(argc, argv, &options);
  if (!wrong.empty()) return Complain(wrong);
  if (options.list) {
    for (const Case& c : kCases) printf("%-20s %s\n", c.name, c.question);
    return 0;
  }
  if (!options.child.empty()) {
    int status = RunLateFreesChild(options.child);
    if (status < 0) status = RunSharingChild(options.child);
    return status >= 0 ? status : Complain("no child is named '" + options.child + "'");
  }
  return RunCase(options);
}
