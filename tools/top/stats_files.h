// The files of figures of running processes (HOTPACK_STATS_DIR), found from outside.
#pragma once

#include <string>
#include <vector>

#include "runtime/persist/stats_file.h"

namespace hotpack {

// What a look at a process from outside says.
enum class Found {
  kFigures,       // it keeps figures in files
  kOtherVersion,  // it does, and another version of hotpack wrote them
  kNoRequest,     // it has hotpack and a directory for figures, and has not requested memory yet
  kNoDirectory,   // it has hotpack, which keeps no figures outside of it: HOTPACK_STATS_DIR is not set
  kNoHotpack,
  kDenied,  // its memory map may not be read
  kNoProcess,
};

// One process's figures. Its files stay open, so that the last figures can be read after its end, when `hotpack run`
// has removed them.
class StatsFiles {
 public:
  // Opens the files that the process has mapped, also those of a process in a container. O(mappings).
  explicit StatsFiles(int pid);
  // Opens the files of the process in `directory`: for processes whose memory maps may not be read.
  StatsFiles(int pid, const std::string& directory);
  StatsFiles(StatsFiles&& other) noexcept;
  StatsFiles& operator=(StatsFiles&&) = delete;
  ~StatsFiles();

  Found found() const { return found_; }
  int pid() const { return pid_; }  // as this process sees it
  // Returns false if the process has ended, or has removed its files, as the end of its `hotpack run` does.
  bool Active() const;
  // Reads the figures of both libraries together (Combine), with pid() for the id. Returns false if none is complete.
  bool Read(ProcessStats* stats) const;
  // Returns the path of what the program adds to them (tools/run/program_sections.h), whether it is there or not.
  const std::string& sections() const { return sections_; }

 private:
  void Open(const std::string& path);
  void Judge();  // sets found_ where there are files

  int pid_ = 0;
  Found found_ = Found::kNoProcess;
  std::vector<int> files_;
  std::string sections_;
};

}  // namespace hotpack
