// Virtual time: a clock for each host thread. Streams have theirs in order.h. Nothing sleeps or reads a real clock,
// so the same calls take the same time on every machine.
//
// A thread's clock goes on with its driver calls and waits alone. What a program does between two calls takes no time.
// Threads that wait for each other by other means than the driver (mutexes, queues) have independent clocks. But a
// call that submits to a stream comes after the stream's last submission, whichever thread made that.
#pragma once

#include <atomic>
#include <cstdint>

namespace simgpu {

// What one entry point takes, and has taken. Nanoseconds.
struct CallTime {
  double cost = 0;      // a call
  double cost_mib = 0;  // each MiB of a call that changes memory
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> taken{0};
  std::atomic<uint64_t> waited{0};  // for the device, in addition
};

// Returns true if SIMGPU_TIME is set. Call after the process's first call.
bool TimeMode();
void StartTimeMode();

// Of the calling thread. Thread-safe. Without the time mode they do nothing and return 0.
uint64_t HostNow();
void HostEnters(CallTime* call);      // a call begins: takes its cost
void HostTakesBytes(uint64_t bytes);  // the same call, by size
void HostTakes(uint64_t nanoseconds);
void HostWaits(uint64_t until);        // for the device
void HostComesAfter(uint64_t moment);  // of another thread; no wait
void HostSubmits();
// A query found its work unfinished. In a row without a submission each takes twice as long as the one before, up to
// 100 microseconds: a program that polls has to come to an end.
void HostPolls();

// The end of all work and of all threads' clocks so far.
uint64_t Makespan();
void NoteEnd(uint64_t moment);
uint64_t TotalWaited();

}  // namespace simgpu
