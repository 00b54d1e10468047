// Ctrl-C while a file is written: what is half written is removed first.
#pragma once

#include <atomic>

namespace hotpack {

// While one exists, SIGINT, SIGTERM and SIGHUP are noted and do not end the program; a signal that was ignored stays
// ignored. One at a time, on the main thread.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Ends the program by the signal that came, as if it had not been held back, so that a shell sees it. Returns if none
  // has come.
  static void EndIfInterrupted();
};

// Whether such a signal has come. Thread-safe.
bool Interrupted();
const std::atomic<bool>* InterruptFlag();  // the same, to be watched by PackOptions::cancel

}  // namespace hotpack
