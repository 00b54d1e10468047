#include "tools/top/stats_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <utility>

#include "tools/cli/process_tree.h"

namespace hotpack {
namespace {

// As the process itself has its id: the innermost of its namespaces.
std::string OwnId(int pid) {
  std::istringstream status(ProcessFile(pid, "status"));
  std::string own = std::to_string(pid);
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("NSpid:", 0) != 0) continue;
    std::istringstream words(line.substr(6));
    for (std::string word; words >> word;) own = word;
  }
  return own;
}

// A process that began without hotpack may have got HOTPACK_STATS_DIR later. Then its files say so.
bool BeganWithDirectory(int pid) {
  const std::string variables = std::string(1, '\0') + ProcessFile(pid, "environ");
  const std::string name = std::string(1, '\0') + "HOTPACK_STATS_DIR=";
  const size_t at = variables.find(name);
  return at != std::string::npos && variables.c_str()[at + name.size()] != '\0';
}

bool IsLibrary(const std::string& mapped) {
  const std::string name = mapped.substr(mapped.rfind('/') + 1);
  return name.rfind("libhotpack.so", 0) == 0 || name.rfind("libhotpack_preload.so", 0) == 0;
}

// Of a process's file stats.<pid>, or stats.<pid>.library, returns its file sections.<pid>. Both are in one folder.
std::string SectionsBeside(const std::string& path) {
  const size_t name = path.rfind('/') + 1, id = path.find('.', name) + 1;
  return path.substr(0, name) + "sections." + path.substr(id, path.find('.', id) - id);
}

std::string Descriptor(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

}  // namespace

StatsFiles::StatsFiles(int pid) : pid_(pid) {
  int error = 0;
  std::istringstream maps(ProcessFile(pid, "maps", &error));
  const std::string own = "/stats." + OwnId(pid);
  bool library = false;
  for (std::string line; std::getline(maps, line);) {
    const size_t slash = line.find('/');
    if (slash == std::string::npos) continue;
    const std::string path = line.substr(slash);
    library = library || IsLibrary(path);
    // A child has mapped its parent's file as well, after fork.
    if (path.ends_with(own) || path.ends_with(own + ".library")) Open("/proc/" + std::to_string(pid) + "/root" + path);
  }
  Judge();
  if (!files_.empty()) return;
  found_ = error == EACCES ? Found::kDenied : Found::kNoHotpack;
  if (library) found_ = BeganWithDirectory(pid) ? Found::kNoRequest : Found::kNoDirectory;
  if (!IsRunning(pid)) found_ = Found::kNoProcess;
}

StatsFiles::StatsFiles(int pid, const std::string& directory) : pid_(pid) {
  const std::string path = directory + "/stats." + std::to_string(pid);
  Open(path);
  Open(path + ".library");
  Judge();
}

StatsFiles::StatsFiles(StatsFiles&& other) noexcept
    : pid_(other.pid_),
      found_(other.found_),
      files_(std::exchange(other.files_, {})),
      sections_(std::move(other.sections_)) {}

StatsFiles::~StatsFiles() {
  for (const int file : files_) close(file);
}

void StatsFiles::Open(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info;
  if (file < 0) return;
  if (fstat(file, &info) == 0 && S_ISREG(info.st_mode)) {
    files_.push_back(file);
    if (sections_.empty()) sections_ = SectionsBeside(path);
  } else {
    close(file);
  }
}

void StatsFiles::Judge() {
  if (files_.empty()) return;
  const bool other =
      std::any_of(files_.begin(), files_.end(), [](int file) { return IsOtherStatsVersion(Descriptor(file)); });
  found_ = other ? Found::kOtherVersion : Found::kFigures;
}

bool StatsFiles::Active() const {
  const auto there = [](int file) {
    struct stat info;
    return fstat(file, &info) == 0 && info.st_nlink > 0;
  };
  return IsRunning(pid_) && std::any_of(files_.begin(), files_.end(), there);
}

bool StatsFiles::Read(ProcessStats* stats) const {
  ProcessStats all;
  std::vector<hotpack_stats> parts;
  for (const int file : files_) {
    ProcessStats part;
    if (!ReadStatsFile(Descriptor(file), &part)) continue;
    if (parts.empty()) all.program = part.program;
    parts.push_back(part.stats);
    all.arenas += part.arenas;
    all.current.held += part.current.held;
    all.current.live += part.current.live;
    all.current.driver_calls += part.current.driver_calls;
  }
  if (parts.empty()) return false;
  all.stats = Combine(parts.data(), parts.size());
  all.pid = pid_;
  *stats = std::move(all);
  return true;
}

}  // namespace hotpack
