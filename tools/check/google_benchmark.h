// Reads the file that a Google Benchmark program wrote with --benchmark_out.
#pragma once

#include <string>

#include "tools/check/session.h"

namespace hotpack::check {

// Adds to the step a figure for each benchmark of the file: elapsed nanoseconds of its repetitions, and its counter
// `ratio`, if it has one, as "NAME, ratio". A benchmark with an error becomes a failed finding of its name. A file
// without times becomes a failed finding `benchmarks`.
void AddBenchmarks(const std::string& path, Step* step);

// Returns the figure of this name; null if the step has none.
const Figure* FindFigure(const Step& step, const std::string& name);

}  // namespace hotpack::check
