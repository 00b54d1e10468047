// hotpack need: how much device memory a program needs, by some of its steps on the simulated device.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "tools/cli/exit_codes.h"
#include "tools/cli/size_text.h"
#include "tools/need/largest_value.h"
#include "tools/need/need_text.h"
#include "tools/run/run.h"
#include "tools/run/run_program.h"

namespace hotpack {
namespace {

struct NeedArguments {
  SimulatedRunOptions simulated;
  std::string memory = "1T";
  std::string fits;
  std::string vary;  // "batch=1,2,4"
  bool cards = false;
  bool json = false;
  bool no_budgets = false;
  int ranks = 0;
};

// --vary, taken apart.
struct Variation {
  std::string name;
  std::vector<std::string> values;
};

// Returns an empty string, or what is wrong. `command`: must contain {NAME}.
std::string TakeVariation(const std::string& text, const std::vector<std::string>& command, Variation* variation) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return "--vary " + text + ": not NAME=VALUE,VALUE";
  variation->name = text.substr(0, equals);
  for (size_t begin = equals + 1; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end == begin) return "--vary " + text + ": a value is empty";
    variation->values.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (variation->values.empty()) return "--vary " + text + ": no value";
  const std::string place = "{" + variation->name + "}";
  const bool used = std::any_of(command.begin(), command.end(),
                                [&](const std::string& word) { return word.find(place) != std::string::npos; });
  return used ? "" : "--vary " + text + ": the command has no " + place;
}

std::vector<std::string> WithValue(std::vector<std::string> command, const std::string& name,
                                   const std::string& value) {
  const std::string place = "{" + name + "}";
  for (std::string& word : command) {
    for (size_t at = word.find(place); at != std::string::npos; at = word.find(place, at + value.size())) {
      word.replace(at, place.size(), value);
    }
  }
  return command;
}

// Runs the program and adds its case. Returns 0, or the exit code of a run that gives no answer.
int AddCase(const SimulatedRunOptions& options, const std::string& value, NeedAnswer* answer) {
  int code = 0;
  std::optional<SimulatedRun> run = RunSimulated(options, &code);
  if (!run) return code;
  const std::string name = options.run.command.front() + (value.empty() ? "" : " with " + value);
  if (run->code != 0) {
    return FailRun(options.run, run->code > 128 ? run->code : kExitBadUse,
                   name + " ended with code " + std::to_string(run->code) + " on the simulated device");
  }
  if (!run->recording) {
    return FailRun(options.run, kExitBadUse, name + ": " + run->no_recording);
  }
  Need need = NeedOf(*run);
  need.communicates = options.ranks > 1;
  answer->cases.push_back({value, *std::move(run), std::move(need), {}});
  return 0;
}

// Returns what PyTorch's own allocator needs: the smallest device in bytes.
uint64_t PyTorchNeeds(const Need& need) {
  for (const PeerResult& peer : need.comparison.peers) {
    if (peer.name == "pytorch") return peer.smallest.bytes;
  }
  return need.comparison.hotpack.smallest.bytes;
}

// Returns the most that is live outside the recorded step, if that is more than in it; else 0. Bytes.
uint64_t OutsideTheStep(const Need& need) {
  return need.peak && need.peak->bytes < need.comparison.live_peak ? need.comparison.live_peak : 0;
}

// Returns the bytes that the device of --fits leaves for the job; 0: it fits, nobody asked, or none is left.
uint64_t BudgetToFit(const NeedAnswer& answer, const NeedCase& one) {
  if (!answer.fits || Fits(one, answer.fits->bytes)) return 0;
  const uint64_t other = NeededWithContext(one.need) - one.need.comparison.hotpack.smallest.bytes;
  return answer.fits->bytes > other ? answer.fits->bytes - other : 0;
}

// Returns the runs so far by their values; empty if some value is no whole number of at least 1, or is there twice.
std::vector<ValuePoint> PointsOf(const std::vector<NeedCase>& cases) {
  std::vector<ValuePoint> points;
  for (const NeedCase& one : cases) {
    int64_t value = 0;
    const char* const end = one.value.data() + one.value.size();
    const auto [stop, error] = std::from_chars(one.value.data(), end, value);
    if (error != std::errc() || stop != end || value < 1) return {};
    points.push_back({value, NeededWithContext(one.need)});
  }
  std::sort(points.begin(), points.end(), [](const ValuePoint& a, const ValuePoint& b) { return a.value < b.value; });
  const auto twice = std::adjacent_find(points.begin(), points.end(),
                                        [](const ValuePoint& a, const ValuePoint& b) { return a.value == b.value; });
  return twice == points.end() ? points : std::vector<ValuePoint>();
}

// Searches the largest value that fits, by lines and runs: each run adds a case. Returns 0, or the exit code of a run
// that gives no answer.
int FindLargest(SimulatedRunOptions options, const Variation& variation, NeedAnswer* answer) {
  constexpr int kMaxRuns = 4;  // where memory is affine in the value the first one is right
  constexpr int64_t kFactor = 4;
  const std::vector<std::string> command = options.run.command;
  for (int run = 0; run <= kMaxRuns; ++run) {
    const std::vector<ValuePoint> points = PointsOf(answer->cases);
    answer->largest.reset();
    for (const ValuePoint& point : points) {
      if (point.needed <= answer->fits->bytes) answer->largest = point.value;
    }
    std::optional<int64_t> next = LargestByLine(points, answer->fits->bytes);
    if (!next && !points.empty() && answer->largest == points.back().value) {
      next = points.back().value * kFactor;  // more needs no more yet
      answer->largest_at_least = true;
    } else {
      answer->largest_at_least = false;
    }
    const bool known = next && std::any_of(points.begin(), points.end(),
                                           [&](const ValuePoint& point) { return point.value == *next; });
    if (!next || known) return 0;
    if (run == kMaxRuns) {
      answer->largest_at_least = true;
      return 0;
    }
    options.run.command = WithValue(command, variation.name, std::to_string(*next));
    if (const int code = AddCase(options, std::to_string(*next), answer); code != 0) return code;
  }
  return 0;
}

// The ranks that are run: all of a few, else those that often differ.
std::vector<int> RanksToRun(int ranks) {
  constexpr int kFew = 8;
  if (ranks > kFew) return {0, 1, ranks / 2, ranks - 1};
  std::vector<int> all(static_cast<size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Runs each rank alone. Returns 0, or the exit code of a run that gives no answer.
int RunRanks(SimulatedRunOptions options, int ranks, NeedAnswer* answer) {
  answer->parameter = "rank";
  answer->ranks = options.ranks = ranks;
  for (const int rank : RanksToRun(ranks)) {
    options.rank = rank;
    if (const int code = AddCase(options, std::to_string(rank), answer); code != 0) return code;
  }
  return 0;
}

// Runs each value of --vary, or the program as it is. Returns 0, or the exit code of a run that gives no answer.
int RunValues(SimulatedRunOptions options, const Variation& variation, NeedAnswer* answer) {
  answer->parameter = variation.name;
  const std::vector<std::string> command = options.run.command;
  for (const std::string& value : variation.values.empty() ? std::vector<std::string>{""} : variation.values) {
    options.run.command = WithValue(command, variation.name, value);
    if (const int code = AddCase(options, value, answer); code != 0) return code;
  }
  return 0;
}

// The case that is shown in detail: the last value, or the rank that needs most.
size_t DetailedCase(const NeedAnswer& answer) {
  if (answer.ranks == 0) return answer.cases.size() - 1;
  const auto most = std::max_element(
      answer.cases.begin(), answer.cases.end(),
      [](const NeedCase& a, const NeedCase& b) { return NeededWithContext(a.need) < NeededWithContext(b.need); });
  return static_cast<size_t>(most - answer.cases.begin());
}

int RunNeed(NeedArguments options) {
  NeedAnswer answer;
  Variation variation;
  if (!options.vary.empty()) {
    const std::string reason = TakeVariation(options.vary, options.simulated.run.command, &variation);
    if (!reason.empty()) return FailRun(options.simulated.run, kExitBadUse, reason);
  }
  answer.cards = options.cards;
  if (!options.fits.empty()) answer.fits = {options.fits, static_cast<uint64_t>(*ParseSize(options.fits))};
  options.simulated.run.memory = std::to_string(*ParseSize(options.memory));
  const int ended = options.ranks > 0 ? RunRanks(options.simulated, options.ranks, &answer)
                                      : RunValues(options.simulated, variation, &answer);
  if (ended != 0) return ended;
  const bool fits = !answer.fits || std::all_of(answer.cases.begin(), answer.cases.end(),
                                                [&](const NeedCase& one) { return Fits(one, answer.fits->bytes); });
  if (answer.fits && !variation.name.empty()) {
    if (const int code = FindLargest(options.simulated, variation, &answer); code != 0) return code;
  }
  answer.detailed = DetailedCase(answer);
  NeedCase& shown = answer.cases[answer.detailed];
  if (!options.no_budgets) {
    shown.budgets =
        PlanBudgets(shown.run.graph, PyTorchNeeds(shown.need), OutsideTheStep(shown.need), BudgetToFit(answer, shown));
  }
  const std::string text = options.json ? NeedJson(answer).dump(2) + "\n" : NeedText(answer);
  fwrite(text.data(), 1, text.size(), stdout);
  return fits ? kExitDone : kExitFailed;
}

}  // namespace

void AddNeedCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<NeedArguments>();
  options->simulated.run.subcommand = "need";
  CLI::App* command =
      app.add_subcommand("need", "Says how much device memory a program needs: some steps of it, without a GPU");
  command
      ->add_option("--steps", options->simulated.steps,
                   "End a PyTorch program after N optimizer steps; 0: it runs to its end, as other programs do")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1'000'000}))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--fits", options->fits,
                   "Does it fit a device of this size (such as 24GB), with CUDA's context? Exit code 1 if not")
      ->check(SizeOption())
      ->check([](const std::string& size) { return ParseSize(size) > 0 ? std::string() : "a device has at least 1"; });
  CLI::Option* vary =
      command->add_option("--vary", options->vary,
                          "Run it once for each value: NAME=VALUE,VALUE,... in the place of {NAME} in the command");
  vary->type_name("NAME=VALUES");
  command
      ->add_option(
          "--ranks", options->ranks,
          "As torchrun with N processes, each on a device of its own: one rank at a time, in fake process groups")
      ->check(CLI::Range(1, 4096))
      ->type_name("N")
      ->excludes(vary);
  command->add_flag("--gpus", options->cards, "List cards, and on which it fits");
  command->add_option("--memory", options->memory, "Of the simulated device, as the program sees it")
      ->check(SizeOption())
      ->check([](const std::string& size) {
        return ParseSize(size) >= int64_t{2} << 20 ? std::string() : "a device has at least 2M, not " + size;
      })
      ->capture_default_str();
  command->add_flag("--keep-values", options->simulated.keep_values,
                    "Keep large contents, in host memory: for programs that read back what they have copied");
  command->add_flag("--no-graph", options->simulated.no_graph,
                    "Do not record the last step's operators: without the composition of the peak, and quicker");
  command->add_flag("--no-budgets", options->no_budgets, "Do not plan for less memory, which takes some seconds");
  command->add_flag("--json", options->json, "Print one object; bytes");
  CLI::Option* first = AddProgram(command);
  command->footer(
      "What the program prints goes to stderr. Contents on the device are zeros.\n"
      "Example:\n  hotpack need -- python train.py\n"
      "  hotpack need --fits 24GB --vary batch=8,16,32 -- python train.py --batch {batch}");
  command->callback([command, first, options, exit_code] {
    const std::string reason = TakeProgram(*command, *first, &options->simulated.run);
    *exit_code = reason.empty() ? RunNeed(*options) : FailRun(options->simulated.run, kExitBadUse, reason);
  });
}

}  // namespace hotpack
