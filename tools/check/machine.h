// Facts about this machine without the driver's API.
#pragma once

#include <ctime>
#include <string>

#include "nlohmann/json.hpp"

namespace hotpack::check {

// Returns the version of NVIDIA's kernel module, "580.65.06"; empty if there is none.
std::string DriverVersion();

// Returns {"cpu", "cores", "memory_bytes", "kernel", "glibc"}. Names neither the machine nor its owner.
nlohmann::ordered_json HostFacts();

// "2026-03-01T12:00:00Z".
std::string UtcDate(time_t seconds);

}  // namespace hotpack::check
