#include "tools/check/machine.h"

#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <regex>

namespace hotpack::check {
namespace {

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

std::string DriverVersion() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  // NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build ...
  std::smatch match;
  static const std::regex pattern(R"(\s(\d+\.\d+(?:\.\d+)?)\s)");
  return std::regex_search(line, match, pattern) ? match[1].str() : "";
}

nlohmann::ordered_json HostFacts() {
  utsname system = {};
  uname(&system);
  const auto memory = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return {{"cpu", CpuName()},
          {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
          {"memory_bytes", memory},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"glibc", gnu_get_libc_version()}};
}

std::string UtcDate(time_t seconds) {
  tm parts = {};
  gmtime_r(&seconds, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace hotpack::check
