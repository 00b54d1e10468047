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

// The parts: what matters most on a machine that may be there for minutes only, in this order. Each has a limit.
void RunPointers(Session& session);     // what queries answer, and whether every look-up leads to hotpack
void RunEnable(Session& session);       // GPT-2 small under hotpack.enable(), compared with PyTorch both ways
void RunGrowth(Session& session);       // 16 GiB in blocks of one size
void RunOverlapPart(Session& session);  // copies on a stream of their own
void RunCaptures(Session& session);     // captures and graphs
void RunDistributed(Session& session);  // torch.distributed with one rank
void RunSharing(Session& session);      // IPC and dma-buf
void RunEnds(Session& session);         // releases at the ends of processes
void RunNearlyFull(Session& session);   // a device with hardly any memory left
// `probes`: PyTorch under the preload, then every other case of gpu_probe and every one of its statically linked form.
void RunProbes(Session& session);

// Steps of the parts that need PyTorch (step_torch_parts.cc).
void RunTorchOverlap(Session& session);
void RunTorchGraphs(Session& session);
void RunPreloadedPytorch(Session& session);
// Adds PyTorch's allocators to `rounds` of the group `timing`; null: none.
void RunTorchRequests(Session& session, Step* rounds);

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

// Trains GPT-2 small and ResNet-50 within budgets, if PyTorch is available.
void RunBudget(Session& session);

// Finds the largest batch that fits, if PyTorch is available. Takes minutes.
void RunLargest(Session& session);

// The groups after `facts`, in the order in which they run.
struct Group {
  const char* name;
  void (*run)(Session&);
  double limit;  // seconds with --quick, which a part never exceeds; 0: no part
  double share;  // seconds that the earlier groups leave it with --quick; it also gets those that they do not use
  bool pytorch;  // some of its steps need PyTorch
};
inline constexpr Group kGroups[] = {
    {"pointers", RunPointers, 10, 0, false},
    {"enable", RunEnable, 40, 0, true},
    {"growth", RunGrowth, 30, 0, false},
    {"overlap", RunOverlapPart, 30, 0, true},
    {"captures", RunCaptures, 20, 0, true},
    {"distributed", RunDistributed, 30, 0, true},
    {"sharing", RunSharing, 15, 0, false},
    {"ends", RunEnds, 15, 0, false},
    {"nearly_full", RunNearlyFull, 20, 0, false},
    {"probes", RunProbes, 60, 0, true},
    // Losses bit for bit and step times, what a request costs, the largest batch; then the rest.
    {"pytorch", RunPytorch, 0, 60, true},
    {"budget", RunBudget, 0, 30, true},
    {"training", RunTraining, 0, 50, false},
    {"timing", RunTiming, 0, 25, true},
    {"largest", RunLargest, 0, 0, true},
    {"collectors", RunCollectors, 0, 15, false},
    {"benchmarks", RunBenchmarks, 0, 20, false},
    {"traces", RunTraces, 0, 10, false},
};
inline constexpr char kGroupNames[] =
    "facts, pointers, enable, growth, overlap, captures, distributed, sharing, ends, nearly_full, probes, pytorch, "
    "budget, training, timing, largest, collectors, benchmarks and traces";

}  // namespace hotpack::check
