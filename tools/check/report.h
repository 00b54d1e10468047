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
  size_t differs_driver = 0, differs_hotpack = 0;  // seen without hotpack, and under it
};
Counts Count(const Session& session);

// docs/gpu_check.md describes it. `complete`: all groups have been through. Paths of this machine are shortened.
std::string Document(const Session& session, const DeviceReport& report, const std::string& date, bool complete);

// "gpu_check-nvidia-h200-20260301T120000Z.json".
std::string DefaultName(const std::string& device, const std::string& date);

// Every failure, every difference, what was left out, the figures of timing.
void PrintSummary(const Session& session, const DeviceReport& report, FILE* file);

}  // namespace hotpack::check
