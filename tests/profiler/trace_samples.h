// Random recordings for the tests of the trace files, and the seed they are drawn from.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "profiler/event.h"
#include "profiler/notes.h"

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
      constexpr EventKind kOthers[] = {EventKind::kInterrupt, EventKind::kResume, EventKind::kExpect};
      event.kind = what == 18 ? EventKind::kMark : kOthers[random() % 3];
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

// Notes of every kind for `trace`, in fields of every magnitude. Launches name blocks that are live.
inline Notes SampleNotes(std::mt19937_64& random, const Trace& trace) {
  Notes notes;
  auto magnitude = [&random](int bits) { return random() >> (63 - random() % static_cast<unsigned>(bits)); };
  auto name = [&]() -> NameOrdinal { return random() % 8 == 0 ? kNoName : static_cast<NameOrdinal>(random() % 5); };
  notes.names = {"", "gemm<float, 128>", "range \xC3\xA9", std::string(4096, 'n'), "main (a.py:1)\nf (b.py:2)"};
  std::vector<uint64_t> live;
  for (uint64_t position = 0;; ++position) {
    for (uint64_t more = random() % 3; more > 0; --more) {
      const uint64_t time = magnitude(60);
      const auto thread = static_cast<uint16_t>(magnitude(16));
      if (random() % 2 == 0) {
        Launch launch{.position = position,
                      .time_ns = time,
                      .first_block = notes.launch_blocks.size(),
                      .name = name(),
                      .stream = static_cast<uint32_t>(magnitude(32)),
                      .thread = thread};
        for (size_t i = 0; i < live.size() && i < random() % 40; ++i)
          notes.launch_blocks.push_back(live[random() % live.size()]);
        launch.blocks = static_cast<uint32_t>(notes.launch_blocks.size() - launch.first_block);
        if (random() % 2 == 0) launch.start_ns = magnitude(60), launch.end_ns = launch.start_ns + 1 + magnitude(60);
        notes.launches.push_back(launch);
      } else if (random() % 2 == 0) {
        RangeEdge edge{
            .position = position, .time_ns = time, .thread = thread, .kind = static_cast<RangeKind>(1 + random() % 5)};
        if (edge.kind == RangeKind::kStart || edge.kind == RangeKind::kEnd) edge.id = magnitude(63);
        if (edge.kind != RangeKind::kPop && edge.kind != RangeKind::kEnd) edge.name = name();
        notes.ranges.push_back(edge);
      } else {
        notes.memory.push_back({.position = position,
                                .time_ns = time,
                                .address = magnitude(63),
                                .bytes = magnitude(63),
                                .name = name(),
                                .kind = static_cast<uint32_t>(magnitude(32)),
                                .thread = thread,
                                .released = random() % 2 == 0});
      }
    }
    if (position == trace.events.size()) break;
    const Event& event = trace.events[position];
    if (event.kind == EventKind::kAllocate) live.push_back(event.id);
    if (event.kind == EventKind::kAllocate && random() % 4 == 0) notes.stacks.push_back({event.id, name()});
    if (event.kind == EventKind::kRelease) std::erase(live, event.id);
  }
  return notes;
}

// What differs, in one word; empty if nothing.
inline std::string NotesDiffer(const Notes& a, const Notes& b) {
  if (a.names != b.names) return "names";
  if (a.launch_blocks != b.launch_blocks) return "blocks";
  auto same = [](const auto& x, const auto& y, auto equal) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), equal);
  };
  if (!same(a.launches, b.launches, [](const Launch& x, const Launch& y) {
        return x.position == y.position && x.time_ns == y.time_ns && x.start_ns == y.start_ns && x.end_ns == y.end_ns &&
               x.first_block == y.first_block && x.blocks == y.blocks && x.name == y.name && x.stream == y.stream &&
               x.thread == y.thread;
      })) {
    return "launches";
  }
  if (!same(a.ranges, b.ranges, [](const RangeEdge& x, const RangeEdge& y) {
        return x.position == y.position && x.time_ns == y.time_ns && x.id == y.id && x.name == y.name &&
               x.thread == y.thread && x.kind == y.kind;
      })) {
    return "ranges";
  }
  if (!same(a.memory, b.memory, [](const DriverMemory& x, const DriverMemory& y) {
        return x.position == y.position && x.time_ns == y.time_ns && x.address == y.address && x.bytes == y.bytes &&
               x.name == y.name && x.kind == y.kind && x.thread == y.thread && x.released == y.released;
      })) {
    return "memory";
  }
  if (!same(a.stacks, b.stacks,
            [](const BlockStack& x, const BlockStack& y) { return x.id == y.id && x.stack == y.stack; })) {
    return "stacks";
  }
  return "";
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
