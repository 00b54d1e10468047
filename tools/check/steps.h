// The groups of steps. Each records what it finds; none stops another.
#pragma once

#include <string>

#include "tools/check/session.h"

namespace hotpack::check {

// What facts found. Json objects as docs/gpu_check.md describes them.
struct DeviceReport {
  nlohmann::ordered_json device;
  nlohmann::ordered_json versions;
};

// Asks for the device; without one (or with --simulate) switches the session to the simulated device and asks again.
// False if there is not even that.
bool RunFacts(Session& session, DeviceReport* report);

// Every case of gpu_probe and of its statically linked form, without and with hotpack.
void RunProbes(Session& session);

// request_bench for every allocator, in turn, round by round.
void RunTiming(Session& session);

// Gradients; losses without hotpack, twice, against every way of running with it.
void RunTraining(Session& session);

// Kernel times by CUPTI: recordings with them, and CUPTI afterwards.
void RunCollectors(Session& session);

// Recorded traces through `hotpack replay`.
void RunTraces(Session& session);

// The benchmarks of bench/: their figures.
void RunBenchmarks(Session& session);

// PyTorch's models under its own allocator and under hotpack, where there is a PyTorch.
void RunPytorch(Session& session);

// The groups after facts, in the order in which they run.
struct Group {
  const char* name;
  void (*run)(Session&);
  double share;  // seconds that the groups before it leave it with --quick; those they do not use are its own as well
};
inline constexpr Group kGroups[] = {
    {"probes", RunProbes, 90},         {"timing", RunTiming, 35},         {"training", RunTraining, 100},
    {"collectors", RunCollectors, 35}, {"benchmarks", RunBenchmarks, 45}, {"traces", RunTraces, 25},
    {"pytorch", RunPytorch, 120},
};
inline constexpr char kGroupNames[] = "facts, probes, timing, training, collectors, benchmarks, traces and pytorch";

}  // namespace hotpack::check
