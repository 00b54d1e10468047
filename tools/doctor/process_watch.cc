#include "tools/doctor/process_watch.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hotpack {
namespace {

namespace fs = std::filesystem;
constexpr auto kEvery = std::chrono::milliseconds(100);

// Adds the children of all threads of a process, and their descendants.
void AddDescendants(int pid, std::vector<int>* all) {
  std::error_code error;
  for (const auto& task : fs::directory_iterator(absl::StrCat("/proc/", pid, "/task"), error)) {
    std::ifstream children(task.path() / "children");
    for (int child; children >> child;) {
      all->push_back(child);
      AddDescendants(child, all);
    }
  }
}

std::string CommandLine(const std::string& process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/cmdline"), std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Returns true if it has the driver but not the preload. Between fork and exec a child of hotpack is a copy of this
// process, which may have loaded the driver to check for one.
bool IsMissed(int pid) {
  static const std::string own = CommandLine("self");
  if (CommandLine(std::to_string(pid)) == own) return false;
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
  std::vector<int> all;
  AddDescendants(getpid(), &all);
  for (const int pid : all) {
    if (missed_.contains(pid) || !IsMissed(pid)) continue;
    std::error_code error;
    missed_[pid] = fs::read_symlink(absl::StrCat("/proc/", pid, "/exe"), error).string();
  }
}

}  // namespace hotpack
