// hotpack diff: what two recordings have live at their peaks, by size and by line of the program.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "tools/cli/commands.h"
#include "tools/cli/progress.h"
#include "tools/cli/size_text.h"
#include "tools/formats/any_recording.h"
#include "tools/recording/peak_lines.h"
#include "tools/recording/trace_facts.h"

namespace hotpack {
namespace {

using Json = nlohmann::ordered_json;

struct DiffArguments {
  std::string first, second;
  uint64_t rows = 15;
  bool json = false;
};

struct Amount {
  uint64_t blocks = 0, bytes = 0;
};

// A class of blocks in both recordings.
struct Row {
  std::string name;
  Amount first, second;
  int64_t Difference() const { return static_cast<int64_t>(second.bytes) - static_cast<int64_t>(first.bytes); }
};

struct Side {
  TraceFacts facts;
  std::map<std::string, Amount> sizes;  // by class
  std::map<std::string, Amount> lines;
};

// Sizes from a power of two up to the next one: "1.0 MiB to 2.0 MiB".
std::string SizeClass(uint64_t bytes) {
  const uint64_t low = std::bit_floor(bytes);
  return FormatSize(low) + " to " + FormatSize(2 * low);
}

Side SideOf(const TraceFile& file) {
  Side side;
  side.facts = CountFacts(file.trace);
  for (const auto& [id, bytes] : LiveAtPeak(file.trace)) {
    Amount& amount = side.sizes[SizeClass(bytes)];
    ++amount.blocks;
    amount.bytes += bytes;
  }
  for (const PeakLine& line : PeakByLine(file)) {
    side.lines[line.line.empty() ? "no stack" : line.line] = {line.blocks, line.bytes};
  }
  return side;
}

// Returns the classes that differ, largest difference first.
std::vector<Row> Compared(const std::map<std::string, Amount>& first, const std::map<std::string, Amount>& second) {
  std::map<std::string, Row> rows;
  for (const auto& [name, amount] : first) rows[name].first = amount;
  for (const auto& [name, amount] : second) rows[name].second = amount;
  std::vector<Row> sorted;
  for (auto& [name, row] : rows) {
    row.name = name;
    if (row.first.bytes != row.second.bytes || row.first.blocks != row.second.blocks) sorted.push_back(row);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Row& a, const Row& b) { return std::abs(a.Difference()) > std::abs(b.Difference()); });
  return sorted;
}

std::string Signed(int64_t bytes) {
  return (bytes < 0 ? "-" : "+") + FormatSize(static_cast<uint64_t>(std::abs(bytes)));
}

void PrintFigure(const char* name, uint64_t first, uint64_t second) {
  const int64_t difference = static_cast<int64_t>(second) - static_cast<int64_t>(first);
  printf("%-22s %12s %12s %13s\n", name, FormatSize(first).c_str(), FormatSize(second).c_str(),
         difference == 0 ? "same" : Signed(difference).c_str());
}

void PrintRows(const char* title, const std::vector<Row>& rows, uint64_t most) {
  if (rows.empty()) return;
  printf("\n%s\n", title);
  uint64_t shown = 0;
  for (const Row& row : rows) {
    if (shown++ == most) break;
    const char* only = row.first.blocks == 0    ? "  only in the second"
                       : row.second.blocks == 0 ? "  only in the first"
                                                : "";
    printf("%13s  %llu -> %llu blocks, %s -> %s  %s%s\n", Signed(row.Difference()).c_str(),
           static_cast<unsigned long long>(row.first.blocks), static_cast<unsigned long long>(row.second.blocks),
           FormatSize(row.first.bytes).c_str(), FormatSize(row.second.bytes).c_str(), row.name.c_str(), only);
  }
  if (rows.size() > most) printf("%13s  %zu more (--rows)\n", "...", rows.size() - most);
}

Json ToJson(const TraceFacts& facts) {
  return {{"requests", facts.requests},
          {"bytes", facts.bytes},
          {"live_peak", facts.live_peak},
          {"live_end", facts.live_end}};
}

Json ToJson(const std::vector<Row>& rows) {
  Json list = Json::array();
  for (const Row& row : rows) {
    list.push_back({{"name", row.name},
                    {"first", {{"blocks", row.first.blocks}, {"bytes", row.first.bytes}}},
                    {"second", {{"blocks", row.second.blocks}, {"bytes", row.second.bytes}}}});
  }
  return list;
}

int RunDiff(const DiffArguments& options) {
  std::vector<Side> sides;
  for (const std::string& path : {options.first, options.second}) {
    absl::StatusOr<TraceFile> file = LoadForCommand("diff", path);
    if (!file.ok()) {
      fprintf(stderr, "hotpack diff: %s\n", std::string(file.status().message()).c_str());
      return 2;
    }
    const Progress progress("reading " + path);
    sides.push_back(SideOf(*file));
  }
  const Side &first = sides[0], &second = sides[1];
  const std::vector<Row> sizes = Compared(first.sizes, second.sizes);
  const bool stacks = !first.lines.empty() && !second.lines.empty();
  const std::vector<Row> lines = stacks ? Compared(first.lines, second.lines) : std::vector<Row>();
  if (options.json) {
    const Json object = {{"first", ToJson(first.facts)},
                         {"second", ToJson(second.facts)},
                         {"peak_by_size", ToJson(sizes)},
                         {"peak_by_line", stacks ? ToJson(lines) : Json()}};
    printf("%s\n", object.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return 0;
  }
  printf("%-22s %12s %12s %13s\n", "", "first", "second", "difference");
  PrintFigure("live peak", first.facts.live_peak, second.facts.live_peak);
  PrintFigure("live at the end", first.facts.live_end, second.facts.live_end);
  PrintFigure("requested in all", first.facts.bytes, second.facts.bytes);
  printf("%-22s %12llu %12llu\n", "requests", static_cast<unsigned long long>(first.facts.requests),
         static_cast<unsigned long long>(second.facts.requests));
  PrintRows("live at the peaks, by line of the program", lines, options.rows);
  PrintRows("live at the peaks, by size", sizes, options.rows);
  return 0;
}

}  // namespace

void AddDiffCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<DiffArguments>();
  CLI::App* command = app.add_subcommand("diff", "Compares two recordings: their peaks, and what is live there");
  command->add_option("FIRST", options->first, "A recording, also a PyTorch snapshot or an RMM log")->required();
  command->add_option("SECOND", options->second, "The one to compare with it")->required();
  command->add_option("--rows", options->rows, "At most this many rows of a table, those that differ most")
      ->check(CLI::Range(uint64_t{1}, uint64_t{100'000}))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one object with all rows; bytes");
  command->footer("Example:\n  hotpack diff before.trace after.trace");
  command->callback([options, exit_code] { *exit_code = RunDiff(*options); });
}

}  // namespace hotpack
