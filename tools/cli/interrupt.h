// What a signal that ends the program must not leave behind: half-written files, a line of progress on the terminal.
#pragma once

#include <string>

namespace hotpack {

// While one exists, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE and SIGXCPU remove the file at `path`, or the directory
// there and the files in it, before they end the program, which then ends by that signal as any other would, so that a
// shell sees it. A signal that was ignored stays ignored. At most 8 at a time (a further one has no effect), made and
// destroyed on one thread.
class RemovedAtSignal {
 public:
  explicit RemovedAtSignal(const std::string& path);
  ~RemovedAtSignal();
  RemovedAtSignal(const RemovedAtSignal&) = delete;
  RemovedAtSignal& operator=(const RemovedAtSignal&) = delete;

 private:
  int slot_;
};

// From now on (or no more) those signals also clear the line of the terminal that the cursor is in. Thread-safe.
void ClearLineAtSignal(bool clear);

}  // namespace hotpack
