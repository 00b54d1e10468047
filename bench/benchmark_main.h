// The common main() of the Google Benchmark programs.
#pragma once

namespace hotpack::bench {

// Runs the registered benchmarks, with Google Benchmark's own options. --smoke runs each for a moment only (for ctest).
// `smoke` tells this to benchmarks that choose their own size. `enroll`, unless null, is called first and may register
// more. Returns the exit code: 1 if a benchmark could not run, or would have measured something else (SkipWithError).
int RunBenchmarks(int argc, char** argv, void (*enroll)(bool smoke) = nullptr);

}  // namespace hotpack::bench
