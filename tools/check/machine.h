// What is known of this machine without asking the driver's API.
#pragma once

#include <ctime>
#include <string>

#include "nlohmann/json.hpp"

namespace hotpack::check {

// The version of NVIDIA's kernel module, "580.65.06"; empty if there is none.
std::string DriverVersion();

// {"cpu", "cores", "memory_bytes", "kernel", "glibc"}. Nothing that names the machine or its owner.
nlohmann::ordered_json HostFacts();

// "2026-03-01T12:00:00Z".
std::string UtcDate(time_t seconds);

}  // namespace hotpack::check
