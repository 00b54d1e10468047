// What a Google Benchmark program wrote with --benchmark_out.
#pragma once

#include <string>

#include "tools/check/session.h"

namespace hotpack::check {

// Adds to the step a figure for each benchmark of the file: elapsed nanoseconds of its repetitions, and its counter
// `ratio`, if it has one, as "NAME, ratio". A benchmark with an error fails, under its name; so does a file without a
// single time, as `benchmarks`.
void AddBenchmarks(const std::string& path, Step* step);

// The figure of this name; null if the step has none.
const Figure* FindFigure(const Step& step, const std::string& name);

}  // namespace hotpack::check
