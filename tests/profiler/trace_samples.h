// Random recordings for the tests of the trace files, and the seed they are drawn from.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "profiler/event.h"

namespace hotpack::testing {

// HOTPACK_TEST_SEED, or a fresh seed; printed either way.
inline uint64_t TestSeed() {
  const char* given = getenv("HOTPACK_TEST_SEED");
  uint64_t seed = given != nullptr ? strtoull(given, nullptr, 0) : std::random_device{}();
  printf("HOTPACK_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

struct SampleOptions {
  bool sequential_ids = false;  // ids 0, 1, 2, ... as a CSV reader gives them
  bool context = true;          // flags, threads, streams, times: what a CSV does not keep
};

// A valid recording of `length` events with every kind of event, and fields of every magnitude.
inline Trace SampleTrace(std::mt19937_64& random, size_t length, const SampleOptions& options) {
  Trace trace;
  std::vector<Event> live;
  uint64_t next_id = options.sequential_ids ? 0 : random() % 1000;
  uint64_t time = 0;
  auto magnitude = [&random](int bits) { return random() >> (63 - random() % static_cast<unsigned>(bits)); };
  while (trace.events.size() < length) {
    Event event;
    unsigned what = static_cast<unsigned>(random() % 20);
    if (what < 9 || (what < 18 && live.empty())) {
      event.kind = EventKind::kAllocate;
      event.id = next_id;
      next_id += options.sequential_ids || random() % 4 != 0 ? 1 : 1 + magnitude(40);
      event.bytes = random() % 2 == 0 ? 512 * (1 + magnitude(30)) : 1 + magnitude(39);
    } else if (what < 18) {
      size_t chosen = random() % live.size();
      event.kind = EventKind::kRelease;
      event.id = live[chosen].id;
      event.bytes = live[chosen].bytes;
      live[chosen] = live.back();
      live.pop_back();
    } else {
      event.kind = what == 18 ? EventKind::kMark : random() % 2 == 0 ? EventKind::kInterrupt : EventKind::kResume;
    }
    if (options.context) {
      if (random() % 3 == 0) {
        event.flags = static_cast<uint8_t>(random());
        event.thread = static_cast<uint16_t>(magnitude(16));
        event.stream = static_cast<uint32_t>(magnitude(32));
      }
      if (random() % 2 == 0) time = magnitude(60);  // may go back
      event.time_ns = time;
    }
    if (event.kind == EventKind::kAllocate) live.push_back(event);
    trace.events.push_back(event);
  }
  return trace;
}

inline bool SameEvent(const Event& a, const Event& b) {
  return a.kind == b.kind && a.flags == b.flags && a.thread == b.thread && a.stream == b.stream && a.id == b.id &&
         a.bytes == b.bytes && a.time_ns == b.time_ns;
}

// The number of leading events that are the same.
inline size_t CommonPrefix(const Trace& a, const Trace& b) {
  size_t i = 0;
  while (i < a.events.size() && i < b.events.size() && SameEvent(a.events[i], b.events[i])) ++i;
  return i;
}

inline std::string TempPath(const std::string& name) {
  const char* folder = getenv("TMPDIR");
  return std::string(folder != nullptr ? folder : "/tmp") + "/hotpack_test_" + std::to_string(getpid()) + "_" + name;
}

}  // namespace hotpack::testing
