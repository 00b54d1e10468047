// The groups of steps. Each records its findings; none stops another.
#pragma once

#include <string>

#include "tools/check/session.h"

namespace hotpack::check {

// Results of the group `facts`: JSON objects of docs/gpu_check.md.
struct DeviceReport {
  nlohmann::ordered_json device;
  nlohmann::ordered_json versions;
};

// Queries the device. Without one (or with --simulate) switches the session to the simulated device and queries again.
// Returns false if that fails too.
bool RunFacts(Session& session, DeviceReport* report);

// Runs every case of gpu_probe and of its statically linked form, without and with hotpack.
void RunProbes(Session& session);

// Runs request_bench for every allocator by turns, round by round.
void RunTiming(Session& session);

// Checks gradients, and the losses of every way of running with hotpack against two runs without.
void RunTraining(Session& session);

// Records kernel times by CUPTI, and checks CUPTI afterwards.
void RunCollectors(Session& session);

// Plays recorded traces through `hotpack replay`.
void RunTraces(Session& session);

// Runs the benchmarks of bench/ for their figures.
void RunBenchmarks(Session& session);

// Runs PyTorch's models under its own allocator and under hotpack, if PyTorch is available.
void RunPytorch(Session& session);

// The groups after `facts`, in the order in which they run.
struct Group {
  const char* name;
  void (*run)(Session&);
  double share;  // seconds that the earlier groups leave it with --quick; it also gets those that they do not use
};
inline constexpr Group kGroups[] = {
    {"probes", RunProbes, 90},         {"timing", RunTiming, 35},         {"training", RunTraining, 100},
    {"collectors", RunCollectors, 35}, {"benchmarks", RunBenchmarks, 45}, {"traces", RunTraces, 25},
    {"pytorch", RunPytorch, 120},
};
inline constexpr char kGroupNames[] = "facts, probes, timing, training, collectors, benchmarks, traces and pytorch";

}  // namespace hotpack::check
