#include "tools/top/top_table.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "tools/cli/count_text.h"

namespace hotpack {
namespace {

constexpr const char* kTitles[] = {
    "                              held      live    free      held      live      by the                            "
    "                driver",
    "    pid  program               MiB       MiB           at most      peak        plan      requests  iterations  "
    "requests/s       calls",
};

std::string Part(uint64_t part, uint64_t whole, int decimals) {
  if (whole == 0) return "-";
  char text[32];
  snprintf(text, sizeof(text), "%.*f %%", decimals, 100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return text;
}

double Mebibytes(uint64_t bytes) { return static_cast<double>(bytes) / 1048576.0; }

// A program's name may have any characters; those that could move the cursor are shown as '?'.
std::string Shown(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return name;
}

// `rate`: the text of its column.
std::string Row(const std::string& name, const ProcessStats& process, const std::string& iterations,
                const std::string& rate) {
  const hotpack_stats& stats = process.stats;
  const CurrentFigures& now = process.current;
  char text[256];
  snprintf(text, sizeof(text), "%-25s %8.1f  %8.1f  %6s  %8.1f  %8.1f  %10s  %12llu  %10s  %10s  %10llu", name.c_str(),
           Mebibytes(now.held), Mebibytes(now.live), Part(now.held - std::min(now.held, now.live), now.held, 1).c_str(),
           Mebibytes(stats.reserved_peak), Mebibytes(stats.live_peak), Part(stats.planned, stats.requests, 2).c_str(),
           static_cast<unsigned long long>(stats.requests), iterations.c_str(), rate.c_str(),
           static_cast<unsigned long long>(now.driver_calls));
  return text;
}

std::string Rate(double requests_per_second) {
  char text[32];
  snprintf(text, sizeof(text), "%.0f", requests_per_second);
  return text;
}

std::string RowOf(const WatchedFigures& figures) {
  char name[64];
  snprintf(name, sizeof(name), "%7d  %-16s", figures.process.pid, Shown(figures.process.program).c_str());
  const std::string rate = figures.ended                 ? "ended"
                           : figures.requests_per_second ? Rate(*figures.requests_per_second)
                                                         : "-";
  return Row(name, figures.process, std::to_string(figures.process.stats.iterations), rate);
}

std::string TotalOf(const std::vector<WatchedFigures>& processes) {
  const bool all_ended = std::all_of(processes.begin(), processes.end(), [](const auto& p) { return p.ended; });
  ProcessStats sum;
  std::vector<hotpack_stats> parts;
  double rate = 0;
  bool any_rate = false;
  for (const WatchedFigures& figures : processes) {
    if (figures.ended && !all_ended) continue;
    parts.push_back(figures.process.stats);
    sum.current.held += figures.process.current.held;
    sum.current.live += figures.process.current.live;
    sum.current.driver_calls += figures.process.current.driver_calls;
    any_rate = any_rate || figures.requests_per_second.has_value();
    rate += figures.requests_per_second.value_or(0);
  }
  sum.stats = Combine(parts.data(), parts.size());
  return Row("  total  " + CountText(parts.size(), "process"), sum, "", any_rate ? Rate(rate) : "-");
}

}  // namespace

std::vector<std::string> TopTable(const std::vector<WatchedFigures>& processes, size_t rows, size_t columns) {
  std::vector<std::string> lines(std::begin(kTitles), std::end(kTitles));
  const size_t listed = std::min(std::max<size_t>(rows, 1), processes.size());
  for (size_t i = 0; i < listed; ++i) lines.push_back(RowOf(processes[i]));
  if (listed < processes.size()) lines.push_back("    ...  " + std::to_string(processes.size() - listed) + " more");
  if (processes.size() > 1) lines.push_back(TotalOf(processes));
  for (std::string& line : lines) {
    if (columns > 0 && line.size() > columns) line.resize(columns);
  }
  return lines;
}

}  // namespace hotpack
