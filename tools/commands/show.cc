// hotpack show: the contents of a recording, and its iterations. (Plan files: show_plan.cc.)
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "packer/bounds.h"
#include "profiler/trace_file.h"
#include "tools/cli/commands.h"
#include "tools/cli/count_text.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/progress.h"
#include "tools/cli/size_text.h"
#include "tools/commands/show_notes.h"
#include "tools/formats/any_recording.h"
#include "tools/recording/hot_iteration.h"
#include "tools/recording/load_curve.h"
#include "tools/recording/run_course.h"
#include "tools/recording/trace_facts.h"
#include "tools/report/show_plan.h"

namespace hotpack {
namespace {

using Json = nlohmann::ordered_json;

struct ShowArguments {
  std::string file;
  std::string fail_above;  // a size; empty: no limit
  bool json = false;
};

// One iteration in figures. Bytes are sums of sizes rounded up to 512.
struct Figures {
  uint64_t requests = 0;  // of one period
  uint64_t unroll = 1;
  uint64_t begins_at = 0;  // the request of the recording at which the chosen rotation begins
  uint64_t carried_blocks = 0, carried_bytes = 0;
  uint64_t retained_blocks = 0, retained_bytes = 0;
  uint64_t peak = 0;  // load of the planned blocks
  uint64_t lower_bound = 0;
};

Figures FiguresOf(const HotIteration& hot) {
  const Profile& profile = hot.profile;
  Figures figures;
  figures.requests = profile.period;
  figures.unroll = profile.unroll;
  figures.begins_at = profile.first_ordinal;
  figures.carried_blocks = profile.carried_blocks;
  figures.carried_bytes = profile.carried_units * kBlockUnit;
  for (const ProfileBlock& block : profile.blocks) {
    if (block.planned) continue;
    ++figures.retained_blocks;
    figures.retained_bytes += block.units * kBlockUnit;
  }
  figures.peak = PeakUnits(profile) * kBlockUnit;
  std::vector<uint32_t> index;
  figures.lower_bound = static_cast<uint64_t>(MaxLoad(ToInstance(profile, &index)));
  return figures;
}

// Returns the number of requests of each marked iteration.
std::vector<uint64_t> Lengths(const std::vector<uint64_t>& bounds) {
  std::vector<uint64_t> lengths;
  for (size_t i = 1; i < bounds.size(); ++i) lengths.push_back(bounds[i] - bounds[i - 1]);
  return lengths;
}

const char* EndText(TraceOrigin::End end) {
  switch (end) {
    case TraceOrigin::End::kClosed:
      return "closed";
    case TraceOrigin::End::kNotClosed:
      return "not closed";
    case TraceOrigin::End::kLimitReached:
      return "size limit reached";
    case TraceOrigin::End::kDiskFull:
      return "disk full";
  }
  return "";
}

Json ToJson(const Figures& figures) {
  return {{"requests", figures.requests},
          {"unroll", figures.unroll},
          {"begins_at", figures.begins_at},
          {"carried_blocks", figures.carried_blocks},
          {"carried_bytes", figures.carried_bytes},
          {"retained_blocks", figures.retained_blocks},
          {"retained_bytes", figures.retained_bytes},
          {"peak", figures.peak},
          {"lower_bound", figures.lower_bound}};
}

Json ToJson(const std::optional<HotIteration>& hot) { return hot ? ToJson(FiguresOf(*hot)) : Json(); }

void PrintJson(const TraceFile& file, const TraceFacts& facts, const RunCourse& course, const std::string& what) {
  bool binary = file.origin.format == TraceOrigin::Format::kTraceFile;
  Json object = {{"format", !what.empty() ? what : binary ? "trace" : "event-csv"}};
  if (binary) {
    object["program"] = file.origin.program;
    object["process"] = file.origin.process;
    object["created"] = UtcText(file.origin.created_ns);
    object["end"] = EndText(file.origin.end);
  }
  object["events"] = facts.events;
  object["requests"] = facts.requests;
  object["releases"] = facts.releases;
  object["marks"] = facts.marks;
  object["bytes"] = facts.bytes;
  object["live_peak"] = facts.live_peak;
  object["live_end"] = facts.live_end;
  object["streams"] = facts.streams;
  object["threads"] = facts.threads;
  object["async_requests"] = facts.async;
  object["duration_ns"] = facts.duration_ns;
  object["marked_iterations"] = Lengths(MarkedIterations(file.trace));
  object["marked"] = ToJson(MarkedIteration(file.trace));
  object["detected"] = ToJson(DetectedIteration(file.trace));
  AddCourseJson(course, &object);
  AddNotesJson(file, &object);
  printf("%s\n", object.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

void PrintFigures(const Figures& figures) {
  printf("  requests     %llu", static_cast<unsigned long long>(figures.requests));
  if (figures.unroll > 1) printf(", planned %s at a time", CountText(figures.unroll, "iteration").c_str());
  printf("\n  begins at    request %llu, where the least is carried\n",
         static_cast<unsigned long long>(figures.begins_at));
  printf("  carried      %s, %s\n", CountText(figures.carried_blocks, "block").c_str(),
         FormatSize(figures.carried_bytes).c_str());
  printf("  retained     %s, %s\n", CountText(figures.retained_blocks, "block").c_str(),
         FormatSize(figures.retained_bytes).c_str());
  printf("  peak         %llu (%s)\n", static_cast<unsigned long long>(figures.peak), FormatSize(figures.peak).c_str());
  printf("  lower bound  %llu (%s)\n", static_cast<unsigned long long>(figures.lower_bound),
         FormatSize(figures.lower_bound).c_str());
}

void PrintOrigin(const TraceOrigin& origin, const std::string& what) {
  if (!what.empty()) {
    printf("format         %s\n", what.c_str());
    if (origin.created_ns > 0) printf("began          %s\n", UtcText(origin.created_ns).c_str());
    return;
  }
  if (origin.format == TraceOrigin::Format::kEventCsv) {
    printf("format         event CSV\n");
    return;
  }
  printf("format         trace file, %s\n", EndText(origin.end));
  printf("program        %s, process %u, %s\n", origin.program.empty() ? "unknown" : origin.program.c_str(),
         origin.process, UtcText(origin.created_ns).c_str());
}

// Prints "306 306 306", shortened.
void PrintMarked(const std::vector<uint64_t>& lengths) {
  constexpr size_t kMax = 12;
  printf("marked         %s; requests:", CountText(lengths.size(), "iteration").c_str());
  for (size_t i = 0; i < lengths.size() && i < kMax; ++i) printf(" %llu", static_cast<unsigned long long>(lengths[i]));
  printf("%s\n", lengths.size() > kMax ? " ..." : "");
}

// Only on a terminal with Unicode: a file or a pipe gets the figures alone.
void PrintCurve(const char* name, const std::vector<uint64_t>& load) {
  constexpr size_t kIndent = 15;
  if (!ShowsCurves(STDOUT_FILENO)) return;
  std::string text = CurveText(load, CurveWidth(STDOUT_FILENO, kIndent), 2, kIndent);
  if (!text.empty()) text.replace(0, strlen(name), name);
  fputs(text.c_str(), stdout);
}

void PrintText(const TraceFile& file, const TraceFacts& facts, const RunCourse& course, const std::string& what) {
  PrintOrigin(file.origin, what);
  auto u = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  printf("events         %llu: %s, %s, %s\n", u(facts.events), CountText(facts.requests, "request").c_str(),
         CountText(facts.releases, "release").c_str(), CountText(facts.marks, "mark").c_str());
  printf("requested      %s in all; %s, %s, %s\n", FormatSize(facts.bytes).c_str(),
         CountText(facts.streams, "stream").c_str(), CountText(facts.threads, "thread").c_str(),
         CountText(facts.async, "asynchronous request").c_str());
  printf("live           %llu at most (%s), %llu at the end\n", u(facts.live_peak), FormatSize(facts.live_peak).c_str(),
         u(facts.live_end));
  if (facts.duration_ns > 0) printf("duration       %.3f s\n", static_cast<double>(facts.duration_ns) / 1e9);
  std::vector<uint64_t> lengths = Lengths(MarkedIterations(file.trace));
  if (!lengths.empty()) PrintMarked(lengths);
  PrintCourse(course);
  const std::optional<HotIteration> marked = MarkedIteration(file.trace), detected = DetectedIteration(file.trace);
  if (marked) {
    printf("the last marked iteration\n");
    PrintFigures(FiguresOf(*marked));
    PrintCurve("  load", LoadOf(marked->profile));
  }
  if (detected) {
    printf("the iteration that is found without marks\n");
    PrintFigures(FiguresOf(*detected));
    if (!marked) PrintCurve("  load", LoadOf(detected->profile));
  } else {
    printf("without marks no iteration is found that repeats\n");
    if (!marked) PrintCurve("load", LoadOf(file.trace));
  }
  PrintNotes(file);
}

absl::StatusOr<AnyRecording> LoadWithProgress(const std::string& path) {
  const Progress progress("reading " + path);
  return LoadAnyRecording(path);
}

int RunShow(const ShowArguments& options) {
  if (LooksLikePlan(options.file)) return ShowPlan(options.file, options.json);
  absl::StatusOr<AnyRecording> recording = LoadWithProgress(options.file);
  if (!recording.ok()) {
    fprintf(stderr, "hotpack show: %s\n", std::string(recording.status().message()).c_str());
    return 2;
  }
  if (!recording->remark.empty()) {
    fprintf(stderr, "hotpack show: %s: %s\n", options.file.c_str(), recording->remark.c_str());
  }
  const TraceFile& file = recording->file;
  const TraceFacts facts = CountFacts(file.trace);
  const RunCourse course = CourseOf(file);
  if (options.json) {
    PrintJson(file, facts, course, recording->what);
  } else {
    PrintText(file, facts, course, recording->what);
  }
  if (options.fail_above.empty() || facts.live_peak <= static_cast<uint64_t>(*ParseSize(options.fail_above))) return 0;
  fflush(stdout);
  fprintf(stderr, "hotpack show: %s: the live peak, %s, is above %s\n", options.file.c_str(),
          FormatSize(facts.live_peak).c_str(), options.fail_above.c_str());
  return kExitFailed;
}

}  // namespace

void AddShowCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<ShowArguments>();
  CLI::App* command =
      app.add_subcommand("show", "Shows what a recording holds (events, iterations, peak, lower bound), or a plan");
  command->add_option("FILE", options->file, "A recording, also a PyTorch snapshot or an RMM log, or a plan file")
      ->required();
  command->add_flag("--json", options->json, "Print one object");
  command
      ->add_option("--fail-above", options->fail_above,
                   "Exit with 1, and a line on stderr, if the live peak is above this size")
      ->check(SizeOption());
  command->footer("Example:\n  hotpack show job.trace");
  command->callback([options, exit_code] { *exit_code = RunShow(*options); });
}

}  // namespace hotpack
