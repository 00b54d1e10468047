// What a program needs: from a simulated run to figures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/compare/compare_facts.h"
#include "tools/need/simulated_run.h"
#include "tools/recording/run_course.h"

namespace hotpack {

// By the program's graph a step each. Otherwise between two marks, and before the first one: PyTorch's first optimizer
// step is not marked, so the first entry has two steps.
struct NeedStep {
  uint64_t live_peak = 0;  // bytes, each block rounded up to 512
  uint64_t live_end = 0;   // ... when it ends
};

// Of one part of a peak: of a kind, a module or a line.
struct PeakPart {
  std::string name;
  uint64_t bytes = 0;
  std::vector<std::pair<std::string, uint64_t>> kinds;  // with their bytes, most first; empty for a kind
};

// The moment of the most live memory, by the program's graph. Parts have most bytes first.
struct NeedPeak {
  uint64_t bytes = 0;
  uint64_t step = 0;
  std::string phase, operation, line, module;  // empty: unknown
  std::vector<PeakPart> by_kind, by_module, by_line;
};

struct Need {
  Comparison comparison;  // rows: pytorch, pytorch-expandable
  std::vector<NeedStep> steps;
  bool same_requests = false;  // the last two marked steps request the same sizes in the same order
  int64_t growth = 0;          // bytes from the end of the last step but one to that of the last
  bool growth_known = false;   // there are two steps
  // Of many steps (tools/recording/run_course.h): whether memory rises again and again. Known from ten marked ones on.
  std::optional<MemoryGrowth> long_growth;
  bool long_growth_known = false;
  bool repeats_known = false;    // there are two marked steps
  bool communicates = false;     // with other ranks, over NCCL
  std::optional<NeedPeak> peak;  // nothing: the program left no graph
};

// Analyses a run that has a recording. `smallest`: search the smallest devices.
Need NeedOf(const SimulatedRun& run, bool smallest = true);

// Reads the section "peak" of a graph's JSON. Returns nothing if the text is none.
std::optional<NeedPeak> ReadPeak(const std::string& graph);

// Reads the section "steps" of a graph's JSON, up to the first step of which something is unknown.
std::vector<NeedStep> ReadSteps(const std::string& graph);

// Returns the smallest device for hotpack with what is not simulated, in bytes.
uint64_t NeededWithContext(const Need& need);

}  // namespace hotpack
