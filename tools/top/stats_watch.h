// The figures of processes under hotpack, read again and again while they run.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/persist/stats_file.h"
#include "tools/top/stats_files.h"

namespace hotpack {

struct WatchedFigures {
  ProcessStats process;
  std::string sections;                       // the path of what the program adds (tools/run/program_sections.h)
  bool ended = false;                         // these are its last figures
  std::optional<double> requests_per_second;  // since the reading before; empty: there was none, or it has ended
};

class StatsWatch {
 public:
  // Watches the process `root` and its descendants; 0: all processes. `directory`: with root 0, only those that keep
  // their figures there; empty: wherever they do.
  StatsWatch(int root, std::string directory);

  // Looks for new processes, and reads all. Returns those that run first, and of these the one that holds most. One
  // that has ended stays, with its last figures. Without a root only until the next reading. O(processes + mappings).
  std::vector<WatchedFigures> Read();

  // The processes of the last reading without readable figures, by what was found of them.
  const std::map<Found, std::vector<int>>& others() const { return others_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Watched {
    explicit Watched(StatsFiles opened) : files(std::move(opened)) {}
    StatsFiles files;
    WatchedFigures figures;
    bool read = false;  // `figures` are of some reading
    Clock::time_point at;
  };

  void LookForNew();
  void Consider(StatsFiles files);
  static void Update(Watched* watched);

  const int root_;
  const std::string directory_;
  std::map<int, Watched> watched_;  // by process id
  std::map<Found, std::vector<int>> others_;
};

}  // namespace hotpack
