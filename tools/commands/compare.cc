// hotpack compare: a recording under hotpack and under the simulated policies of other allocators, in one table.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "profiler/trace_file.h"
#include "tools/cli/choices.h"
#include "tools/cli/commands.h"
#include "tools/cli/count_text.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/progress.h"
#include "tools/cli/size_text.h"
#include "tools/compare/compare_facts.h"
#include "tools/compare/fragmentation_text.h"
#include "tools/formats/any_recording.h"
#include "tools/replay/repeat_step.h"

namespace hotpack {
namespace {

using Json = nlohmann::ordered_json;
using Seconds = std::chrono::duration<double>;

struct CompareArguments {
  std::string file;
  std::vector<std::string> peers = PeerNames();
  std::string capacity;
  std::string fits;
  bool no_smallest = false;
  uint64_t repeat = 0;
  bool json = false;
};

int FailCompare(const std::string& message) {
  fprintf(stderr, "hotpack compare: %s\n", message.c_str());
  return 2;
}

std::string JoinedNames() {
  std::string names;
  for (const std::string& name : PeerNames()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

double Ratio(uint64_t bytes, uint64_t live) {
  return live == 0 ? 1.0 : static_cast<double>(bytes) / static_cast<double>(live);
}

// Bytes from the text of an option; 0: it was not given.
uint64_t SizeFrom(const std::string& text) { return text.empty() ? 0 : static_cast<uint64_t>(*ParseSize(text)); }

// What `compare` answers: the table, and the same rows on the device of --fits.
struct Answer {
  Comparison comparison;
  uint64_t capacity = 0;         // bytes; 0: no limit
  std::string fits;              // the text of --fits; empty: not given
  std::optional<Comparison> on;  // that device
};

Json ToJson(const PeerResult& peer, const PeerResult* on_fits, const Comparison& comparison) {
  Json row = {{"name", peer.name}, {"title", peer.title}, {"offline", peer.offline}};
  if (on_fits != nullptr) row["fits"] = !on_fits->out_of_memory;
  if (peer.smallest.bytes > 0) {
    row["smallest_device"] = peer.smallest.bytes;
    row["smallest_driver_calls"] = peer.smallest.device_calls;
    row["smallest_synchronizations"] = peer.smallest.synchronizations;
  }
  if (peer.out_of_memory) {
    row["out_of_memory"] = true;
    if (!peer.offline) {
      row["failed_request"] = peer.failed_request;
      row["failed_bytes"] = peer.failed_bytes;
    }
    return row;
  }
  row["out_of_memory"] = false;
  row["reserved_peak"] = peer.reserved_peak;
  row["ratio"] = Ratio(peer.reserved_peak, comparison.live_peak);
  row["reserved_steady"] = peer.reserved_steady;
  row["ratio_steady"] = Ratio(peer.reserved_steady, comparison.live_steady);
  row["device_calls"] = peer.device_calls;
  return row;
}

void PrintJson(const Answer& answer) {
  const Comparison& comparison = answer.comparison;
  Json object = {
      {"requests", comparison.requests}, {"live_peak", comparison.live_peak}, {"live_steady", comparison.live_steady}};
  object["capacity"] = answer.capacity == 0 ? Json() : Json(answer.capacity);
  if (answer.on) object["fits"] = {{"bytes", SizeFrom(answer.fits)}, {"hotpack", !answer.on->hotpack.out_of_memory}};
  object["iteration"] = Json();
  if (comparison.period > 0) {
    object["iteration"] = {{"requests", comparison.period},
                           {"marked", comparison.marked},
                           {"not_planned", comparison.not_planned},
                           {"plan_height", comparison.plan_height},
                           {"plan_lower_bound", comparison.plan_lower_bound}};
  }
  object["rows"] = Json::array();
  Json hotpack = ToJson(comparison.hotpack, answer.on ? &answer.on->hotpack : nullptr, comparison);
  if (!comparison.hotpack.out_of_memory) {
    hotpack["held_while_served"] = comparison.held_while_served > 0 ? Json(comparison.held_while_served) : Json();
  }
  object["rows"].push_back(std::move(hotpack));
  for (size_t i = 0; i < comparison.peers.size(); ++i) {
    object["rows"].push_back(ToJson(comparison.peers[i], answer.on ? &answer.on->peers[i] : nullptr, comparison));
  }
  printf("%s\n", object.dump(2).c_str());
}

// Returns "708.3  1.0024": MiB, and the ratio to `live`.
std::string Cell(uint64_t bytes, uint64_t live) {
  char text[64];
  snprintf(text, sizeof(text), "%10.1f %7.4f", static_cast<double>(bytes) / 1048576.0, Ratio(bytes, live));
  return text;
}

// Returns the last three columns; empty if they are unknown.
std::string SmallestCell(const SmallestDevice& smallest) {
  if (smallest.bytes == 0) return "";
  char text[64];
  snprintf(text, sizeof(text), " %16.1f %6llu %6llu", static_cast<double>(smallest.bytes) / 1048576.0,
           static_cast<unsigned long long>(smallest.device_calls),
           static_cast<unsigned long long>(smallest.synchronizations));
  return text;
}

void PrintRow(const PeerResult& peer, const Comparison& comparison) {
  if (peer.out_of_memory) {
    const std::string where =
        peer.offline ? ""
                     : ": request " + std::to_string(peer.failed_request) + ", of " + FormatSize(peer.failed_bytes);
    const std::string needs =
        peer.smallest.bytes > 0 ? "; the smallest device is " + FormatSize(peer.smallest.bytes) : "";
    printf("%-38s  does not fit%s%s\n", peer.title.c_str(), where.c_str(), needs.c_str());
    return;
  }
  printf("%-38s %s %13llu%s\n", peer.title.c_str(), Cell(peer.reserved_peak, comparison.live_peak).c_str(),
         static_cast<unsigned long long>(peer.device_calls), SmallestCell(peer.smallest).c_str());
}

// Two lines: which rows fit a device, by name.
void PrintFits(const std::string& size, const Comparison& on) {
  std::string fit, not_fit;
  const auto add = [&](const PeerResult& row) {
    std::string& names = row.out_of_memory ? not_fit : fit;
    names += (names.empty() ? "" : ", ") + row.name;
  };
  add(on.hotpack);
  for (const PeerResult& peer : on.peers) add(peer);
  printf("\na device of %s fits:         %s\n", size.c_str(), fit.empty() ? "none" : fit.c_str());
  printf("a device of %s is too small for: %s\n", size.c_str(), not_fit.empty() ? "none" : not_fit.c_str());
}

void PrintText(const std::string& file, const Answer& answer, const std::string& capacity) {
  const Comparison& comparison = answer.comparison;
  printf("%s: %s", file.c_str(), CountText(comparison.requests, "request").c_str());
  if (!capacity.empty()) printf(", on a device of %s", capacity.c_str());
  printf("\n");
  if (comparison.period > 0) {
    printf("iteration with the highest live load: %s, %s\n", CountText(comparison.period, "request").c_str(),
           comparison.marked ? "as marked" : "as found");
    printf("plan of it: height %s, lower bound %s; live in addition, not planned: %s\n",
           FormatSize(comparison.plan_height).c_str(), FormatSize(comparison.plan_lower_bound).c_str(),
           FormatSize(comparison.not_planned).c_str());
  } else {
    printf("no iteration is marked and none repeats\n");
  }
  const bool smallest = comparison.hotpack.smallest.bytes > 0;
  printf("\n%-38s %18s %13s%s\n", "held at most in the whole run", "MiB    of live", "driver calls",
         smallest ? "  smallest device  calls  waits" : "");
  printf("%-38s %s %13s\n", "live: no allocator holds less", Cell(comparison.live_peak, comparison.live_peak).c_str(),
         "-");
  PrintRow(comparison.hotpack, comparison);
  for (const PeerResult& peer : comparison.peers) PrintRow(peer, comparison);
  if (comparison.held_while_served > 0) {
    printf("\nhotpack's engine, held while served by the plan: %.1f MiB\n",
           static_cast<double>(comparison.held_while_served) / 1048576.0);
  }
  if (const std::string text = FragmentationText(comparison); !text.empty()) printf("\n%s\n", text.c_str());
  if (answer.on) PrintFits(answer.fits, *answer.on);
}

int RunCompare(const CompareArguments& options) {
  absl::StatusOr<TraceFile> file = LoadForCommand("compare", options.file);
  if (!file.ok()) return FailCompare(std::string(file.status().message()));
  Answer answer;
  answer.capacity = SizeFrom(options.capacity);
  answer.fits = options.fits;
  std::optional<Progress> progress(std::in_place, "comparing " + options.file);
  const Trace trace = RepeatSteadyStep(file->trace, options.repeat);
  answer.comparison = Compare(trace, options.peers, answer.capacity, !options.no_smallest);
  if (!options.fits.empty()) answer.on = Compare(trace, options.peers, SizeFrom(options.fits));
  progress.reset();
  if (answer.comparison.requests == 0) return FailCompare(options.file + ": no requests to compare");
  if (options.json) {
    PrintJson(answer);
  } else {
    PrintText(options.file, answer, options.capacity);
  }
  return answer.on && answer.on->hotpack.out_of_memory ? kExitFailed : kExitDone;
}

}  // namespace

void AddCompareCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<CompareArguments>();
  CLI::App* command =
      app.add_subcommand("compare", "Shows the most that hotpack and other allocators would hold for a recording");
  command->add_option("TRACE", options->file, "A recording, also a PyTorch snapshot or an RMM log")->required();
  CLI::Option* peers =
      command->add_option("--peers", options->peers, "Only these, separated by commas; of " + JoinedNames())
          ->delimiter(',')
          ->check(
              [](const std::string& name) {
                const std::vector<std::string> names = PeerNames();
                return std::find(names.begin(), names.end(), name) != names.end()
                           ? std::string()
                           : "'" + name + "' is none of " + JoinedNames();
              },
              "NAME");
  NoteChoices(peers, PeerNames(), true);
  const auto at_least_one = [](const std::string& size) {
    return ParseSize(size) > 0 ? std::string() : "a capacity is at least 1";
  };
  command
      ->add_option("--capacity", options->capacity,
                   "The device has so much memory (such as 16G): what fits, and what fails where?")
      ->check(SizeOption())
      ->check(at_least_one);
  command
      ->add_option(
          "--fits", options->fits,
          "Which allocators fit a device of this size (such as 24GB)? Exit code 1 if hotpack's engine does not")
      ->check(SizeOption())
      ->check(at_least_one);
  command->add_flag("--no-smallest", options->no_smallest,
                    "Do not search the smallest device of each allocator, which plays the recording some ten times");
  command
      ->add_option("--repeat", options->repeat,
                   "Of a short recording: play its last step, if it repeats the one before, N more times")
      ->check(CLI::Range(uint64_t{0}, uint64_t{10'000}))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one object; bytes");
  command->footer(
      "Example:\n  hotpack compare job.trace --peers pytorch,pytorch-expandable\n"
      "Each policy is simulated on the recording's own events (docs/compare.md).");
  command->callback([options, exit_code] { *exit_code = RunCompare(*options); });
}

}  // namespace hotpack
