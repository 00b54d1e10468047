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
#include "tools/recording/peak_lines.h"

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

// The lines that asked for most of what is live at the peak.
void PrintStacks(const TraceFile& file) {
  constexpr size_t kShown = 8;
  const std::vector<PeakLine> lines = PeakByLine(file);
  printf("stacks         of %s; live at the peak by the line that asked\n",
         CountText(file.notes.stacks.size(), "block").c_str());
  for (size_t i = 0; i < lines.size() && i < kShown; ++i) {
    printf("    %10s  %s: %s\n", FormatSize(lines[i].bytes).c_str(), CountText(lines[i].blocks, "block").c_str(),
           lines[i].line.empty() ? "no stack" : lines[i].line.c_str());
  }
  if (lines.size() > kShown) printf("    ... and %s\n", CountText(lines.size() - kShown, "other line").c_str());
}

Json PeakJson(const TraceFile& file) {
  Json rows = Json::array();
  for (const PeakLine& line : PeakByLine(file)) {
    rows.push_back({{"line", line.line}, {"blocks", line.blocks}, {"bytes", line.bytes}});
  }
  return rows;
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
  if (!notes.stacks.empty()) PrintStacks(file);
  if (!notes.memory.empty()) printf("driver memory  %s\n", CountText(notes.memory.size(), "record").c_str());
}

void AddNotesJson(const TraceFile& file, Json* object) {
  const Notes& notes = file.notes;
  if (!notes.launches.empty()) (*object)["launches"] = LaunchesJson(file);
  if (!notes.ranges.empty()) (*object)["ranges"] = {{"begun", Begins(notes)}, {"marks", Marks(notes)}};
  if (!notes.stacks.empty()) {
    (*object)["stacks"] = notes.stacks.size();
    (*object)["peak_by_line"] = PeakJson(file);
  }
  if (!notes.memory.empty()) (*object)["driver_memory"] = notes.memory.size();
}

void PrintCourse(const RunCourse& course) {
  if (!course.phases.empty()) {
    printf("phases        ");
    for (size_t i = 0; i < course.phases.size(); ++i) {
      const RunPhase& phase = course.phases[i];
      const std::string of = phase.iterations > 1 ? " (" + CountText(phase.iterations, "iteration") + ")" : "";
      printf("%s %s%s %s", i == 0 ? "" : ",", phase.name.c_str(), of.c_str(), FormatSize(phase.live_peak).c_str());
    }
    printf("; live at most\n");
  }
  if (course.growth_known && !course.growth) {
    printf("               Memory does not grow from iteration to iteration.\n");
  }
  for (const std::string& sentence : CourseSentences(course)) printf("               %s\n", sentence.c_str());
}

void AddCourseJson(const RunCourse& course, Json* object) {
  Json phases = Json::array();
  for (const RunPhase& phase : course.phases) {
    phases.push_back({{"name", phase.name}, {"iterations", phase.iterations}, {"live_peak", phase.live_peak}});
  }
  (*object)["phases"] = phases;
  (*object)["growth_known"] = course.growth_known;
  (*object)["growth"] = Json();
  if (course.growth) {
    (*object)["growth"] = {{"bytes", course.growth->bytes},
                           {"iterations", course.growth->iterations},
                           {"blocks", course.growth->blocks},
                           {"where", course.growth->where}};
  }
  (*object)["spike"] = Json();
  if (course.spike) {
    (*object)["spike"] = {{"where", course.spike->where},
                          {"live_peak", course.spike->live_peak},
                          {"usual", course.spike->usual},
                          {"others", course.spike->others}};
  }
}

}  // namespace hotpack
