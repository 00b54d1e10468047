#include "tools/commands/show_notes.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <unordered_set>
#include <vector>

#include "profiler/uses.h"
#include "tools/cli/count_text.h"
#include "tools/cli/size_text.h"
#include "tools/recording/demangle.h"

namespace hotpack {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kGapsShown = 5;

// Shortens a name to a line: the end of a template's name tells more than its middle.
std::string Short(std::string name) {
  constexpr size_t kMax = 60, kHead = 24;
  constexpr char kHidden[] = "(anonymous namespace)::";
  if (name.rfind("void ", 0) == 0) name.erase(0, 5);
  for (size_t at; (at = name.find(kHidden)) != std::string::npos;) name.erase(at, sizeof(kHidden) - 1);
  if (name.size() > kMax) name.replace(kHead, name.size() - kMax + 2, "..");
  return name;
}

struct LaunchFacts {
  uint64_t launches = 0;
  uint64_t kernels = 0;  // different names
  uint64_t named = 0;    // blocks named by some launch
  uint64_t never_named = 0;
  uint64_t never_named_bytes = 0;  // sum of their sizes
  uint64_t timed = 0;              // launches with known times on the device
  uint64_t device_ns = 0;          // sum of these
  std::vector<IdleGap> gaps;
};

std::string NameOf(const Notes& notes, NameOrdinal name) {
  return name == kNoName ? "?" : Demangled(notes.names[name]);
}

LaunchFacts FactsOf(const TraceFile& file, const Uses& uses) {
  LaunchFacts facts;
  facts.launches = file.notes.launches.size();
  std::unordered_set<std::string> names;
  for (const Launch& launch : file.notes.launches) {
    if (launch.name != kNoName) names.insert(file.notes.names[launch.name]);
    if (launch.end_ns == 0) continue;
    ++facts.timed;
    facts.device_ns += launch.end_ns - launch.start_ns;
  }
  facts.kernels = names.size();
  for (const BlockUses& block : uses.blocks) {
    if (block.count > 0) {
      ++facts.named;
    } else {
      ++facts.never_named;
      facts.never_named_bytes += block.bytes;
    }
  }
  facts.gaps = LargestGaps(uses, kGapsShown);
  return facts;
}

unsigned long long U(uint64_t value) { return value; }

void PrintLaunches(const TraceFile& file) {
  const Uses uses = FindUses(file.trace, file.notes);
  const LaunchFacts facts = FactsOf(file, uses);
  printf("launches       %llu of %s, copies and memsets; %s named, %llu never (%s)\n", U(facts.launches),
         CountText(facts.kernels, "kernel").c_str(), CountText(facts.named, "block").c_str(), U(facts.never_named),
         FormatSize(facts.never_named_bytes).c_str());
  if (facts.timed > 0) {
    printf("  on the device  %.3f ms in %llu of them\n", static_cast<double>(facts.device_ns) / 1e6, U(facts.timed));
  }
  if (!facts.gaps.empty()) printf("  largest idle gaps between two uses (bytes times clock)\n");
  for (const IdleGap& gap : facts.gaps) {
    printf("    %.3g: block %llu, %s, clock %llu to %llu, %s to %s\n", static_cast<double>(gap.Area()),
           U(uses.blocks[gap.block].id), FormatSize(gap.bytes).c_str(), U(gap.begin), U(gap.end),
           Short(NameOf(file.notes, file.notes.launches[gap.begin_launch].name)).c_str(),
           Short(NameOf(file.notes, file.notes.launches[gap.end_launch].name)).c_str());
  }
}

Json LaunchesJson(const TraceFile& file) {
  const Uses uses = FindUses(file.trace, file.notes);
  const LaunchFacts facts = FactsOf(file, uses);
  Json gaps = Json::array();
  for (const IdleGap& gap : facts.gaps) {
    gaps.push_back({{"block", uses.blocks[gap.block].id},
                    {"bytes", gap.bytes},
                    {"begin", gap.begin},
                    {"end", gap.end},
                    {"area", gap.Area()},
                    {"before", NameOf(file.notes, file.notes.launches[gap.begin_launch].name)},
                    {"after", NameOf(file.notes, file.notes.launches[gap.end_launch].name)}});
  }
  return {{"count", facts.launches},
          {"kernels", facts.kernels},
          {"blocks_named", facts.named},
          {"blocks_never_named", facts.never_named},
          {"bytes_never_named", facts.never_named_bytes},
          {"timed", facts.timed},
          {"device_ns", facts.device_ns},
          {"largest_gaps", gaps}};
}

uint64_t Begins(const Notes& notes) {
  return static_cast<uint64_t>(std::count_if(notes.ranges.begin(), notes.ranges.end(), [](const RangeEdge& edge) {
    return edge.kind == RangeKind::kPush || edge.kind == RangeKind::kStart;
  }));
}

uint64_t Marks(const Notes& notes) {
  return static_cast<uint64_t>(std::count_if(notes.ranges.begin(), notes.ranges.end(),
                                             [](const RangeEdge& edge) { return edge.kind == RangeKind::kMark; }));
}

}  // namespace

void PrintNotes(const TraceFile& file) {
  const Notes& notes = file.notes;
  if (!notes.launches.empty()) PrintLaunches(file);
  if (!notes.ranges.empty())
    printf("ranges         %llu, and %s\n", U(Begins(notes)), CountText(Marks(notes), "mark").c_str());
  if (!notes.stacks.empty()) printf("stacks         of %s\n", CountText(notes.stacks.size(), "block").c_str());
  if (!notes.memory.empty()) printf("driver memory  %s\n", CountText(notes.memory.size(), "record").c_str());
}

void AddNotesJson(const TraceFile& file, Json* object) {
  const Notes& notes = file.notes;
  if (!notes.launches.empty()) (*object)["launches"] = LaunchesJson(file);
  if (!notes.ranges.empty()) (*object)["ranges"] = {{"begun", Begins(notes)}, {"marks", Marks(notes)}};
  if (!notes.stacks.empty()) (*object)["stacks"] = notes.stacks.size();
  if (!notes.memory.empty()) (*object)["driver_memory"] = notes.memory.size();
}

}  // namespace hotpack
