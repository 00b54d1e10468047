// Reads the notes of a run's processes, for `hotpack doctor`.
#include "tools/doctor/doctor_facts.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "preload/hooks/doctor_file.h"
#include "preload/hooks/hook_list.h"
#include "preload/hooks/work_list.h"
#include "runtime/persist/stats_file.h"

namespace hotpack {
namespace {

// Returns the names by which programs look up hooked functions, in any variant.
const std::set<std::string>& HookedNames() {
#define HOTPACK_NAMES(symbol, base, ...) #symbol, base,
  static const std::set<std::string> names = {HOTPACK_HOOKS(HOTPACK_NAMES) HOTPACK_WORK(HOTPACK_NAMES)};
#undef HOTPACK_NAMES
  return names;
}

// Returns true for names of functions that allocate device memory or submit work. "Host" is the host's memory.
bool LooksLikeOurs(const std::string& name) {
  constexpr const char* kPrefixes[] = {"cuMemAlloc",        "cuMemCreate", "cuMemPoolCreate", "cuLaunch",
                                       "cuMemcpy",          "cuMemset",    "cuGraphLaunch",   "cuStreamBeginCapture",
                                       "cuStreamEndCapture"};
  if (HookedNames().contains(name) || absl::StrContains(name, "Host")) return false;
  // The exported forms of copies that wait for the legacy stream: only their per-thread variants matter.
  for (const char* suffix : {"_v2", "_ptds", "_ptsz"}) {
    if (absl::EndsWith(name, suffix) && HookedNames().contains(name.substr(0, name.size() - strlen(suffix))))
      return false;
  }
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](const char* prefix) { return absl::StartsWith(name, prefix); });
}

ProcessFacts Read(const DoctorFile& file) {
  ProcessFacts facts;
  facts.pid = file.pid;
  facts.program = file.program;
  facts.enabled = file.enabled != 0;
  facts.driver = file.driver != 0;
  facts.deepbind = file.deepbind != 0;
  facts.full = file.full != 0;
  for (const DoctorHook& hook : file.hooks) {
    facts.hooks_in_driver += hook.in_driver != 0 ? 1 : 0;
    facts.hooks_looked_up += hook.looked_up != 0 ? 1 : 0;
    if (hook.handed_on > 0 && hook.symbol[0] != '\0') facts.handed_on.emplace_back(hook.symbol, hook.handed_on.load());
  }
  for (const DoctorName& name : file.unhooked) {
    if (name.taken == 0) break;
    if (name.hooked_base != 0) {
      facts.unknown_variants.push_back(name.name);
    } else if (LooksLikeOurs(name.name)) {
      facts.not_hooked.push_back(name.name);
    }
  }
  for (const DoctorLibrary& library : file.libraries) {
    if (library.taken != 0) facts.libraries.push_back({library.path, library.looked_up, library.hooked});
  }
  std::istringstream lines(std::string(file.mapped, std::min<size_t>(file.mapped_bytes, sizeof(file.mapped))));
  for (std::string line; std::getline(lines, line);) facts.mapped.push_back(line);
  return facts;
}

// Returns the whole file of a process of this build, or nothing.
std::unique_ptr<DoctorFile> Load(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  auto file = std::make_unique<DoctorFile>();
  in.read(reinterpret_cast<char*>(file.get()), sizeof(DoctorFile));
  if (static_cast<size_t>(in.gcount()) != sizeof(DoctorFile) || file->magic != kDoctorMagic) return nullptr;
  return file;
}

}  // namespace

std::vector<ProcessFacts> ReadProcesses(const std::string& directory) {
  std::vector<ProcessFacts> processes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (!absl::StartsWith(entry.path().filename().string(), "doctor.")) continue;
    const std::unique_ptr<DoctorFile> file = Load(entry.path().string());
    if (file == nullptr) continue;
    processes.push_back(Read(*file));
    ProcessStats stats;
    if (ReadStatsFile(absl::StrCat(directory, "/stats.", file->pid), &stats)) processes.back().stats = stats.stats;
  }
  std::sort(processes.begin(), processes.end(), [](const ProcessFacts& a, const ProcessFacts& b) {
    if (a.driver != b.driver) return a.driver;
    return a.stats.requests != b.stats.requests ? a.stats.requests > b.stats.requests : a.pid < b.pid;
  });
  return processes;
}

}  // namespace hotpack
