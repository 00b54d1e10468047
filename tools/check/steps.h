// The groups of steps, in the order in which they run. Each records what it finds; none stops another.
#pragma once

#include <string>

#include "tools/check/session.h"

namespace hotpack::check {

inline constexpr const char* kGroups[] = {"facts", "probes", "timing", "training", "collectors", "traces"};

// What facts found. Json objects as docs/gpu_check.md describes them.
struct DeviceReport {
  nlohmann::ordered_json device;
  nlohmann::ordered_json versions;
};

// Asks for the device; without one (or with --simulate) switches the session to the simulated device and asks again.
// False if there is not even that.
bool RunFacts(Session& session, DeviceReport* report);

// Every case of gpu_probe and of its statically linked form, without and with hotpack.
void RunProbes(Session& session);

// request_bench for every allocator, in turn, round by round.
void RunTiming(Session& session);

// Gradients; losses without hotpack, twice, against every way of running with it.
void RunTraining(Session& session);

// Kernel times by CUPTI: recordings with them, and CUPTI afterwards.
void RunCollectors(Session& session);

// Recorded traces through `hotpack replay`.
void RunTraces(Session& session);

}  // namespace hotpack::check
