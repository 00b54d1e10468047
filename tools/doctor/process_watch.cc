#include "tools/doctor/process_watch.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/cli/process_tree.h"

namespace hotpack {
namespace {

namespace fs = std::filesystem;
constexpr auto kEvery = std::chrono::milliseconds(100);

// Returns true if it has the driver but not the preload. Between fork and exec a child of hotpack is a copy of this
// process, which may have loaded the driver to check for one.
bool IsMissed(int pid) {
  static const std::string own = ProcessFile(getpid(), "cmdline");
  if (ProcessFile(pid, "cmdline") == own) return false;
  std::ifstream maps(absl::StrCat("/proc/", pid, "/maps"));
  bool driver = false;
  for (std::string line; std::getline(maps, line);) {
    if (absl::StrContains(line, "/libhotpack_preload.so")) return false;
    driver = driver || absl::StrContains(line, "/libcuda.so");
  }
  return driver;
}

}  // namespace

ProcessWatch::ProcessWatch() {
  sigset_t all, before;  // signals are for the thread that waits for the program
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!ended_.wait_for(lock, kEvery, [this] { return over_; })) Look();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ProcessWatch::~ProcessWatch() { Stop(); }

std::vector<MissedProcess> ProcessWatch::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
  }
  ended_.notify_one();
  if (thread_.joinable()) thread_.join();
  std::vector<MissedProcess> missed;
  for (const auto& [pid, program] : missed_) missed.push_back({pid, program});
  return missed;
}

void ProcessWatch::Look() {
  for (const int pid : Descendants(getpid())) {
    if (missed_.contains(pid) || !IsMissed(pid)) continue;
    std::error_code error;
    missed_[pid] = fs::read_symlink(absl::StrCat("/proc/", pid, "/exe"), error).string();
  }
}

}  // namespace hotpack
