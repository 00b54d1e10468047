// The collector: takes CUPTI when it is free, passes launches and their times to the recording, and releases CUPTI.
//
//   off ──start──► on ──enough iterations, or the end of the process──► detaching ──► off for good
//                   │
//                   └── another tool has CUPTI now: lost. It is left alone from then on.
//
// 1. One thread of the collector makes all CUPTI calls except those that its callbacks need. So the calls are in one
//    order, and no lock of the program is held in them.
// 2. CUPTI calls back on the program's threads (a driver call begins) and on its own threads (buffers). Callbacks take
//    no lock of hotpack.
// 3. cuptiFinalize is never called: it is safe only at the exit of a driver call with nothing else in progress. The
//    next profiler only needs the subscription, the activities and the buffers back.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "preload/collect/collector_host.h"
#include "preload/cupti/cupti_library.h"
#include "preload/cupti/records.h"

namespace hotpack::cupti {

// Thread-safe. Never destroyed, and inert in a forked child.
class Collector {
 public:
  // Returns true if it is on; else one line was logged. Call once. Waits for the thread, a few seconds at most.
  bool Start(const hotpack_collector_host* host);
  // Hands over what the device has done by now, because a recording is about to close. Waits a second or two at most.
  void Flush();
  // The process ends: hands over and detaches. Waits as Flush does.
  void End();
  void AbandonAfterFork() { abandoned_.store(true, std::memory_order_relaxed); }

  // Called by CUPTI.
  void Submitted(CUpti_CallbackId call, const CUpti_CallbackData& data);
  void BufferRequested(uint8_t** buffer, size_t* bytes, size_t* most_records);
  void BufferCompleted(uint8_t* buffer, size_t valid_bytes);

 private:
  enum class State : uint8_t { kOff, kStarting, kOn, kDone };
  struct Patience {
    int without_progress_ms;  // how long to wait without new records
    int in_all_ms;
  };

  static void* RunThread(void* self);
  void Run();
  bool Attach();
  bool Subscribe();
  bool Enable();
  void Withdraw();
  bool Lost(bool watching);  // watching: launches are watched, as far as is known
  bool Enough() const;
  void Watch();
  void Drain(Patience patience);
  void Detach(Patience patience);
  void SayDropped();
  void Say(const char* format, ...) __attribute__((format(printf, 2, 3)));
  const char* NameOf(CUptiResult result);

  // Waits with mutex_ held: until `done`, or until the milliseconds have passed.
  template <typename Done>
  void WaitLocked(int milliseconds, Done done);
  void Enter(State state);

  const hotpack_collector_host* host_ = nullptr;
  Library library_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  Buffers buffers_;
  ClockDifference clock_;
  uint64_t iterations_wanted_ = 0;  // 0: all

  std::atomic<bool> noting_{false};  // launches go to the host
  std::atomic<bool> abandoned_{false};
  std::atomic<uint64_t> launches_{0};  // whose times the host awaits
  std::atomic<uint64_t> works_{0};     // ... and whose times it has got

  // Guards the members below; never held in a CUPTI call or a host call.
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed_ = PTHREAD_COND_INITIALIZER;  // Start makes it use CLOCK_MONOTONIC
  State state_ = State::kOff;
  bool end_wanted_ = false;
  uint64_t flushes_wanted_ = 0, flushes_done_ = 0;
};

}  // namespace hotpack::cupti
