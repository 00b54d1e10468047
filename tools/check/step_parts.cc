// The parts that run cases of gpu_probe: what is worth most on a machine that may be there for minutes only.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "tools/check/google_benchmark.h"
#include "tools/check/probe_runs.h"
#include "tools/check/steps.h"

namespace hotpack::check {
namespace {

struct PartCase {
  std::string_view part;
  std::string_view name;
  double limit;  // seconds a run with --quick
  bool one_program_only = false;
};

constexpr std::array kPartCases = {
    PartCase{"pointers", "lookups", 6},
    PartCase{"pointers", "info", 6},
    PartCase{"pointers", "coverage", 6},
    PartCase{"growth", "growth_2", 15, true},
    PartCase{"growth", "growth_20", 15, true},
    PartCase{"growth", "growth_64", 15, true},
    PartCase{"overlap", "overlap", 12, true},
    PartCase{"captures", "capture", 12},
    PartCase{"sharing", "sharing", 10, true},
    PartCase{"ends", "late_frees", 12},
    PartCase{"nearly_full", "nearly_full", 15, true},
};

constexpr double kOverlapKept = 0.95;

const PartCase* Find(const std::string& name) {
  const auto* found =
      std::find_if(kPartCases.begin(), kPartCases.end(), [&](const PartCase& each) { return each.name == name; });
  return found != kPartCases.end() ? found : nullptr;
}

// Runs the cases of a part. Calls `then` with the steps of each.
template <typename Then>
void RunCases(Session& session, const std::string& part, Then then) {
  if (!session.kit().Has("gpu_probe")) {
    session.Skip(part, "gpu_probe", "bin/gpu_probe is not here");
    return;
  }
  const std::vector<std::string> listed = ProbeCases(session, part, "gpu_probe");
  for (const PartCase& each : kPartCases) {
    if (each.part != part || Interrupted() != 0) continue;
    const std::string name(each.name);
    if (std::find(listed.begin(), listed.end(), name) == listed.end()) {
      session.Skip(part, "gpu_probe/" + name, "this gpu_probe has no such case");
      continue;
    }
    then(RunProbeCase(session, part, "gpu_probe", name, each.limit * session.LimitScale()));
  }
}

void RunCases(Session& session, const std::string& part) {
  RunCases(session, part, [](const ProbeSteps&) {});
}

// Adds the finding `overlap_kept` for requests by stream order: hotpack's share of overlap against the driver's.
void CompareOverlap(const ProbeSteps& steps) {
  if (steps.without == nullptr || steps.hotpack == nullptr) return;
  const Figure *theirs = FindFigure(*steps.without, "overlap.async"),
               *ours = FindFigure(*steps.hotpack, "overlap.async");
  if (theirs == nullptr || ours == nullptr) return;
  char seen[96];
  snprintf(seen, sizeof seen, "%.3f of the shorter one, by the driver %.3f", ours->median, theirs->median);
  steps.hotpack->Check(ours->median >= kOverlapKept * theirs->median, "overlap_kept",
                       "at least 95 % of the overlap of cudaMallocAsync", seen);
}

}  // namespace

bool HasOwnPart(const std::string& name) { return Find(name) != nullptr; }

bool NeedsOneProgramOnly(const std::string& name) {
  const PartCase* found = Find(name);
  return found != nullptr && found->one_program_only;
}

void RunPointers(Session& session) { RunCases(session, "pointers"); }

void RunGrowth(Session& session) { RunCases(session, "growth"); }

void RunOverlapPart(Session& session) {
  RunCases(session, "overlap", CompareOverlap);
  RunTorchOverlap(session);
}

void RunCaptures(Session& session) {
  RunCases(session, "captures");
  RunTorchGraphs(session);
}

void RunSharing(Session& session) { RunCases(session, "sharing"); }

void RunEnds(Session& session) { RunCases(session, "ends"); }

void RunNearlyFull(Session& session) { RunCases(session, "nearly_full"); }

}  // namespace hotpack::check
