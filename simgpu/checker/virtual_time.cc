#include "simgpu/checker/virtual_time.h"

#include <algorithm>

namespace simgpu {
namespace {

constexpr uint64_t kFirstPoll = 500, kLongestPoll = 100'000;
constexpr double kMiB = 1 << 20;

std::atomic<bool> time_mode{false};
std::atomic<uint64_t> end{0};
std::atomic<uint64_t> waited{0};

struct Host {
  bool started = false;
  uint64_t now = 0;
  CallTime* call = nullptr;
  uint64_t next_poll = kFirstPoll;
};

// Trivial, so that it works while the thread's other objects are destroyed. A thread begins at the latest known moment.
Host& ThisHost() {
  static thread_local constinit Host host;
  if (!host.started) {
    host.started = true;
    host.now = end.load();
  }
  return host;
}

}  // namespace

bool TimeMode() { return time_mode.load(std::memory_order_relaxed); }
void StartTimeMode() { time_mode.store(true); }

uint64_t HostNow() { return TimeMode() ? ThisHost().now : 0; }

void NoteEnd(uint64_t moment) {
  uint64_t known = end.load(std::memory_order_relaxed);
  while (known < moment && !end.compare_exchange_weak(known, moment)) {
  }
}

void HostTakes(uint64_t nanoseconds) {
  if (!TimeMode()) return;
  Host& host = ThisHost();
  host.now += nanoseconds;
  if (host.call != nullptr) host.call->taken.fetch_add(nanoseconds, std::memory_order_relaxed);
  NoteEnd(host.now);
}

void HostEnters(CallTime* call) {
  if (!TimeMode()) return;
  ThisHost().call = call;
  call->calls.fetch_add(1, std::memory_order_relaxed);
  HostTakes(static_cast<uint64_t>(call->cost));
}

void HostTakesBytes(uint64_t bytes) {
  if (!TimeMode() || ThisHost().call == nullptr) return;
  HostTakes(static_cast<uint64_t>(ThisHost().call->cost_mib * static_cast<double>(bytes) / kMiB));
}

void HostWaits(uint64_t until) {
  if (!TimeMode()) return;
  Host& host = ThisHost();
  if (until <= host.now) return;
  waited.fetch_add(until - host.now, std::memory_order_relaxed);
  if (host.call != nullptr) host.call->waited.fetch_add(until - host.now, std::memory_order_relaxed);
  host.now = until;
  NoteEnd(host.now);
}

void HostComesAfter(uint64_t moment) {
  if (!TimeMode()) return;
  Host& host = ThisHost();
  host.now = std::max(host.now, moment);
}

void HostSubmits() {
  if (TimeMode()) ThisHost().next_poll = kFirstPoll;
}

void HostPolls() {
  if (!TimeMode()) return;
  Host& host = ThisHost();
  HostWaits(host.now + host.next_poll);
  host.next_poll = std::min(host.next_poll * 2, kLongestPoll);
}

uint64_t Makespan() { return end.load(); }
uint64_t TotalWaited() { return waited.load(); }

}  // namespace simgpu
