// The document and the summary.
#pragma once

#include <cstdio>
#include <string>

#include "nlohmann/json.hpp"
#include "tools/check/session.h"
#include "tools/check/steps.h"

namespace hotpack::check {

struct Counts {
  size_t steps = 0, pass = 0, fail = 0, skip = 0;
  size_t differs_driver = 0, differs_hotpack = 0;  // without hotpack, and under it
};
Counts Count(const Session& session);

// Returns the document (docs/gpu_check.md). `complete`: all groups have run. Shortens paths of this machine.
std::string DocumentText(const Session& session, const DeviceReport& report, const std::string& date, bool complete);

// Returns a name such as "gpu_check-nvidia-h200-20260301T120000Z.json".
std::string DefaultName(const std::string& device, const std::string& date);

// Prints every failure, every difference, every skipped step, and the figures of timing.
void PrintSummary(const Session& session, const DeviceReport& report, FILE* file);

}  // namespace hotpack::check
