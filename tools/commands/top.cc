// hotpack top: the figures of running processes, while they run.
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "tools/cli/commands.h"
#include "tools/cli/environment.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/process_tree.h"
#include "tools/cli/size_text.h"
#include "tools/run/run_report.h"
#include "tools/top/stats_watch.h"
#include "tools/top/top_table.h"

namespace hotpack {
namespace {

struct TopArguments {
  int pid = 0;  // 0: all processes
  std::string interval = "1s";
  uint64_t count = 0;  // 0: until the processes end; one, if standard output is no terminal
  bool json = false;
};

int FailTop(const std::string& message) {
  fflush(stdout);
  fprintf(stderr, "hotpack top: %s\n", message.c_str());
  return kExitBadUse;
}

// "2" is two seconds.
std::optional<int64_t> ParseInterval(const std::string& text) {
  constexpr int64_t kLeast = 10'000'000;  // ns
  std::optional<int64_t> interval = ParseDuration(text);
  if (!interval) interval = ParseDuration(text + "s");
  return interval && *interval >= kLeast ? interval : std::nullopt;
}

std::string Named(int pid) { return "process " + std::to_string(pid) + " (" + ProgramName(pid) + ")"; }

constexpr char kStart[] = "start it by hotpack run, or with HOTPACK_STATS_DIR=DIRECTORY";

// Why there are no figures of the process, or of any (0) in the directory (empty: anywhere).
std::string WhyNoFigures(int root, const std::string& directory, const std::map<Found, std::vector<int>>& others) {
  const auto first = [&](Found found) {
    const auto there = others.find(found);
    return there == others.end() ? 0 : there->second.front();
  };
  if (root != 0 && first(Found::kNoProcess) == root) return "there is no process " + std::to_string(root);
  if (root != 0 && first(Found::kDenied) == root) return Named(root) + ": " + strerror(EACCES);
  if (const int pid = first(Found::kOtherVersion)) {
    return Named(pid) + " runs under another version of hotpack, whose figures this one cannot read";
  }
  if (const int pid = first(Found::kNoRequest)) return Named(pid) + " has not requested device memory yet";
  if (const int pid = first(Found::kNoDirectory)) {
    return Named(pid) + " has hotpack, which keeps its figures to itself: " + kStart;
  }
  if (root != 0) return Named(root) + " does not run under hotpack, nor does a child of it: " + kStart;
  if (!directory.empty()) return "no running process keeps its figures in HOTPACK_STATS_DIR, " + directory;
  return std::string("no process runs under hotpack: ") + kStart;
}

void PrintJson(const std::vector<WatchedFigures>& all) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const WatchedFigures& figures : all) {
    const ProcessStats& process = figures.process;
    Json object = {{"pid", process.pid},           {"program", process.program},
                   {"arenas", process.arenas},     {"held", process.current.held},
                   {"live", process.current.live}, {"driver_calls", process.current.driver_calls}};
    object.update(Json::parse(StatsJson(process.stats, nullptr, ReadSections(figures.sections))));
    list.push_back(std::move(object));
  }
  const Json document = {{"processes", list}};
  printf("%s\n", document.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

// Prints tables one below the other, or on a terminal each in the place of the one before.
class Screen {
 public:
  void Show(const std::vector<WatchedFigures>& processes) {
    winsize size = {};
    if (in_place_ && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = {};
    constexpr size_t kOtherLines = 5;  // titles, total, those left out, and the line of the cursor
    const size_t rows = size.ws_row > kOtherLines ? size.ws_row - kOtherLines : SIZE_MAX;
    const std::vector<std::string> lines = TopTable(processes, rows, size.ws_col);
    if (in_place_ && shown_ > 0) printf("\033[%zuA", shown_);
    if (!in_place_ && shown_ > 0) printf("\n");
    for (const std::string& line : lines) printf("%s%s\n", line.c_str(), in_place_ ? "\033[K" : "");
    if (in_place_) printf("\033[J");
    fflush(stdout);
    shown_ = lines.size();
  }

 private:
  static bool MovesCursor() {
    const std::string terminal = Environment("TERM");
    return isatty(STDOUT_FILENO) != 0 && !terminal.empty() && terminal != "dumb";
  }
  const bool in_place_ = MovesCursor();
  size_t shown_ = 0;  // lines of the last table
};

bool AllEnded(const std::vector<WatchedFigures>& processes) {
  return std::all_of(processes.begin(), processes.end(), [](const WatchedFigures& p) { return p.ended; });
}

int RunTop(const TopArguments& options) {
  const std::string directory = options.pid == 0 ? Environment("HOTPACK_STATS_DIR") : "";
  std::error_code error;
  if (!directory.empty() && (std::filesystem::directory_iterator(directory, error), error)) {
    return FailTop("HOTPACK_STATS_DIR " + directory + ": " + error.message());
  }
  StatsWatch watch(options.pid, directory);
  std::vector<WatchedFigures> processes = watch.Read();
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  const auto wait = [interval = std::chrono::nanoseconds(*ParseInterval(options.interval))] {
    std::this_thread::sleep_for(interval);
  };
  // A program that has just begun: whoever looks at a screen can wait for it.
  const auto expected = [&] {
    return options.pid != 0 && watch.others().contains(Found::kNoRequest) && !watch.others().contains(Found::kDenied);
  };
  if (terminal && !options.json && processes.empty() && expected()) {
    fprintf(stderr, "hotpack top: %s: waiting\n", WhyNoFigures(options.pid, directory, watch.others()).c_str());
    while (processes.empty() && expected()) {
      wait();
      processes = watch.Read();
    }
  }
  if (processes.empty()) return FailTop(WhyNoFigures(options.pid, directory, watch.others()));
  if (options.json) {
    PrintJson(processes);
    return kExitDone;
  }
  const uint64_t count = options.count > 0 ? options.count : terminal ? UINT64_MAX : 1;
  Screen screen;
  for (uint64_t shown = 0; !processes.empty(); processes = watch.Read()) {
    screen.Show(processes);
    if (++shown == count || AllEnded(processes)) break;
    wait();
  }
  return kExitDone;
}

}  // namespace

void AddTopCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<TopArguments>();
  CLI::App* command = app.add_subcommand("top", "Shows what running processes hold and how they are served");
  command->add_option("PID", options->pid, "The process, with its children; by default all processes under hotpack")
      ->check(CLI::Range(1, INT_MAX));
  CLI::Option* json = command->add_flag("--json", options->json, "Print one reading as one object; bytes");
  command->add_option("--interval", options->interval, "Time between two tables, such as 2 (seconds) or 500ms")
      ->check(CLI::Validator(
          [](std::string& text) {
            return ParseInterval(text) ? "" : "'" + text + "' is no time of 10ms or more, such as 2 (seconds) or 500ms";
          },
          "SECONDS"))
      ->capture_default_str()
      ->excludes(json);
  command
      ->add_option("--count", options->count,
                   "Number of tables (default: until the processes end, or 1 if standard output is no terminal)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}))
      ->excludes(json);
  command->footer("Example:\n  hotpack top\n  hotpack top 4711");
  command->callback([options, exit_code] { *exit_code = RunTop(*options); });
}

}  // namespace hotpack
