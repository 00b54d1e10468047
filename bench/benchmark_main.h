// main() of the Google Benchmark programs here.
#pragma once

namespace hotpack::bench {

// Runs what is registered, with Google Benchmark's own options. --smoke: each for a moment only (ctest); `smoke` says
// so to benchmarks that have a size of their own. `enroll`, unless null, is called before that and may register more.
// Returns the exit code: 1 if a benchmark said that it could not run or that its figure would be of something else
// (SkipWithError).
int RunBenchmarks(int argc, char** argv, void (*enroll)(bool smoke) = nullptr);

}  // namespace hotpack::bench
