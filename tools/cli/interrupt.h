// Clean-up at a signal that ends the program: half-written files, a line of progress on the terminal.
#pragma once

#include <string>

namespace hotpack {

// While one exists, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE and SIGXCPU first remove the file at `path`, or the
// directory there with its files. The program then ends by that signal, so that a shell sees it. An ignored signal
// stays ignored. At most 8 at a time (a further one has no effect), made and destroyed on one thread.
class RemovedAtSignal {
 public:
  explicit RemovedAtSignal(const std::string& path);
  ~RemovedAtSignal();
  RemovedAtSignal(const RemovedAtSignal&) = delete;
  RemovedAtSignal& operator=(const RemovedAtSignal&) = delete;

 private:
  int slot_;
};

// Sets whether those signals also clear the terminal line that the cursor is in. Thread-safe.
void ClearLineAtSignal(bool clear);

}  // namespace hotpack
