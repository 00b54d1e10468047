#include "tools/top/stats_watch.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <tuple>
#include <utility>

#include "tools/cli/process_tree.h"

namespace hotpack {
namespace {

// The processes that have a file in the directory: some may have ended long ago.
std::set<int> ProcessesIn(const std::string& directory) {
  std::set<int> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    int pid = 0;
    if (name.rfind("stats.", 0) != 0) continue;
    if (std::from_chars(name.data() + 6, name.data() + name.size(), pid).ec == std::errc()) all.insert(pid);
  }
  return all;
}

}  // namespace

StatsWatch::StatsWatch(int root, std::string directory) : root_(root), directory_(std::move(directory)) {}

void StatsWatch::Consider(StatsFiles files) {
  const int pid = files.pid();
  if (files.found() != Found::kFigures) {
    others_[files.found()].push_back(pid);
    return;
  }
  watched_.erase(pid);  // an ended process, whose id another one has got
  watched_.emplace(pid, Watched(std::move(files)));
}

void StatsWatch::LookForNew() {
  others_.clear();
  const auto known = [&](int pid) {
    const auto found = watched_.find(pid);
    return found != watched_.end() && !found->second.figures.ended;
  };
  if (root_ == 0 && !directory_.empty()) {
    for (const int pid : ProcessesIn(directory_)) {
      if (known(pid)) continue;
      StatsFiles mapped(pid);
      // Another program may have got the id of one that has ended.
      if (mapped.found() == Found::kFigures) {
        Consider(std::move(mapped));
      } else if (mapped.found() == Found::kDenied || mapped.found() == Found::kOtherVersion) {
        Consider(StatsFiles(pid, directory_));
      }
    }
    return;
  }
  std::vector<int> all = root_ == 0 ? AllProcesses() : Descendants(root_);
  if (root_ != 0) all.insert(all.begin(), root_);
  for (const int pid : all) {
    if (!known(pid) && pid != getpid()) Consider(StatsFiles(pid));
  }
}

void StatsWatch::Update(Watched* watched) {
  WatchedFigures& figures = watched->figures;
  if (figures.ended) return;
  figures.ended = !watched->files.Active();  // before the figures are read, which then are the last ones
  const uint64_t before = figures.process.stats.requests;
  const Clock::time_point now = Clock::now();
  if (!watched->files.Read(&figures.process)) return;  // a program that has become another one begins its file again
  const uint64_t after = figures.process.stats.requests;
  const std::chrono::duration<double> passed = now - watched->at;
  figures.requests_per_second.reset();
  if (watched->read && !figures.ended && after >= before && passed.count() > 0) {
    figures.requests_per_second = static_cast<double>(after - before) / passed.count();
  }
  figures.sections = watched->files.sections();
  watched->read = true;
  watched->at = now;
}

std::vector<WatchedFigures> StatsWatch::Read() {
  if (root_ == 0) std::erase_if(watched_, [](const auto& entry) { return entry.second.figures.ended; });
  LookForNew();
  std::vector<WatchedFigures> all;
  for (auto& [pid, watched] : watched_) {
    Update(&watched);
    if (watched.read) all.push_back(watched.figures);
  }
  std::stable_sort(all.begin(), all.end(), [](const WatchedFigures& a, const WatchedFigures& b) {
    const auto key = [](const WatchedFigures& figures) {
      return std::make_tuple(figures.ended, ~figures.process.current.held);
    };
    return key(a) < key(b);
  });
  return all;
}

}  // namespace hotpack
