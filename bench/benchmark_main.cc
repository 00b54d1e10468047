#include "bench/benchmark_main.h"

#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

namespace hotpack::bench {
namespace {

// The console output, and whether a benchmark failed, for which Google Benchmark itself exits with 0.
class Reporter : public benchmark::ConsoleReporter {
 public:
  Reporter() : ConsoleReporter(OO_Tabular) {}  // no colours, which would be escape codes in a file
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) failed_ |= run.error_occurred;
    ConsoleReporter::ReportRuns(runs);
  }
  bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

}  // namespace

int RunBenchmarks(int argc, char** argv, void (*enroll)(bool smoke)) {
  static char moment[] = "--benchmark_min_time=0.01";
  bool smoke = false;
  std::vector<char*> arguments;
  for (int i = 0; i < argc; ++i) {
    const bool is_smoke = std::strcmp(argv[i], "--smoke") == 0;
    smoke |= is_smoke;
    arguments.push_back(is_smoke ? moment : argv[i]);
  }
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  if (enroll != nullptr) enroll(smoke);
  Reporter reporter;
  const size_t ran = benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
  return ran == 0 || reporter.failed() ? 1 : 0;
}

}  // namespace hotpack::bench
