// Plays a program's requests and releases into a history, as the engine would.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/history.h"

namespace hotpack {

class Recorder {
 public:
  explicit Recorder(uint64_t window = 1 << 16) : history_(window) {}

  uint64_t Ask(uint32_t units) { return history_.Append(units); }
  void Give(uint64_t request) { history_.Released(request); }
  void Give(std::vector<uint64_t>* requests) {
    for (uint64_t request : *requests) Give(request);
    requests->clear();
  }
  void Touch(uint32_t units) { Give(Ask(units)); }  // asked for and released at once
  HistoryTail Tail() const { return CopyTail(history_, history_.Count(), history_.Window()); }
  uint64_t Count() const { return history_.Count(); }
  History& history() { return history_; }

 private:
  History history_;
};

}  // namespace hotpack
