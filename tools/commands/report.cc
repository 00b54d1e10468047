// hotpack report: a recording → one page that shows its packed iteration.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "tools/cli/commands.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/size_text.h"
#include "tools/report/write_report.h"

namespace hotpack {
namespace {

struct ReportArguments {
  ReportOptions report;
  std::string time_limit = "1s";
  bool ignore_streams = false;
  bool force = false;
};

int FailReport(const std::string& message) {
  fprintf(stderr, "hotpack report: %s\n", message.c_str());
  return 2;
}

int RunReport(ReportArguments options) {
  options.report.time_limit_ns = *ParseDuration(options.time_limit);
  options.report.avoid_stream_edges = !options.ignore_streams;
  if (options.report.out.empty() && isatty(STDOUT_FILENO) != 0) {
    return FailReport("a page is not for a terminal: --out has to say where it goes");
  }
  absl::Status status = CheckOutput("--out", options.report.out, options.force, {options.report.path});
  if (!status.ok()) return FailReport(std::string(status.message()));
  std::string summary;
  {
    const Progress progress("packing and drawing " + options.report.path);
    status = WriteReport(options.report, &summary);
  }
  if (!status.ok()) return FailReport(std::string(status.message()));
  fprintf(stderr, "hotpack report: %s\n", summary.c_str());  // not stdout, which may get the page
  return 0;
}

}  // namespace

void AddReportCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<ReportArguments>();
  CLI::App* command =
      app.add_subcommand("report", "Writes one page that shows a recording's packed iteration, its load and its run");
  command
      ->add_option("FILE", options->report.path,
                   "A recording, also a PyTorch snapshot or an RMM log, or a minimalloc CSV")
      ->required();
  AddOutputOption(command, "-o,--out", &options->report.out, "Write to this file, not to standard output (\"-\")");
  AddForceFlag(command, &options->force);
  command->add_option("--time-limit", options->time_limit, "For the packing")
      ->check(DurationOption())
      ->capture_default_str();
  command
      ->add_option("--blocks", options->report.block_limit,
                   "At most this many blocks are in the page, the largest ones")
      ->check(CLI::Range(size_t{1}, size_t{4'000'000}))
      ->capture_default_str();
  command->add_flag("--ignore-streams", options->ignore_streams,
                    "Count the waits between streams that the placement makes, but do not avoid any");
  command->footer("Example:\n  hotpack report job.trace --out report.html");
  command->callback([options, exit_code] {
    options->report.out = OutputPath(options->report.out);
    *exit_code = RunReport(*options);
  });
}

}  // namespace hotpack
