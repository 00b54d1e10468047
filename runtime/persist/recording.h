// What an engine writes to its trace: the events, and between them the notes of collectors (profiler/notes.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiler/event.h"
#include "profiler/trace_record.h"
#include "profiler/trace_writer.h"
#include "runtime/memory/device_memory.h"

namespace hotpack {

// A launch as the hooks saw it. `words`: the contents of its parameters. Words that point into a live block name that
// block.
struct LaunchNote {
  std::string_view name;  // empty: unknown
  const uint64_t* words = nullptr;
  size_t word_count = 0;
  uint32_t stream = 0;  // small ordinal
};

// Returns the small ordinal of the calling thread, from 0, in the order of first calls. All threads beyond 65535 share
// that ordinal. No heap allocation.
uint16_t ThreadOrdinal();

// Guarded by the engine's lock. Functions that can throw throw bad_alloc and leave the trace valid.
class Recording {
 public:
  static constexpr uint64_t kNoLaunch = UINT64_MAX;  // as Engine's

  // `writer`: null: nothing is recorded. Not owned. `index_blocks`: launches will be noted, so that addresses must be
  // found. `nodes`: provides the index's memory.
  Recording(TraceWriter* writer, bool index_blocks, std::pmr::memory_resource* nodes)
      : writer_(writer), index_blocks_(index_blocks), live_(nodes) {}

  bool on() const { return writer_.load(std::memory_order_relaxed) != nullptr; }  // lock-free

  // Appends an event. `address`: of an allocation or release. O(1); with the index O(log blocks).
  void Add(EventKind kind, uint64_t id, uint64_t bytes, uint32_t stream, bool async, DeviceAddress address);

  // Appends a launch. Returns its ordinal for AddWork, or kNoLaunch if nothing was written. `only_if_named`: writes it
  // only if it names a block of this arena. O(words * log blocks).
  uint64_t AddLaunch(const LaunchNote& note, bool only_if_named);
  // Times are nanoseconds of the steady clock; 0: unknown.
  void AddWork(uint64_t launch, std::string_view name, uint64_t start_ns, uint64_t end_ns);
  void AddRange(RangeKind kind, uint64_t id, std::string_view name, uint64_t time_ns, uint16_t thread);
  // Fills in position, thread and the name's ordinal.
  void AddMemory(const DriverMemory& memory, std::string_view name);

  uint64_t Events() const { return on() ? writer()->EventCount() : 0; }
  void Close();
  void Abandon() { writer_ = nullptr; }  // in a forked child: the trace is its parent's

 private:
  TraceWriter* writer() const { return writer_.load(std::memory_order_relaxed); }
  struct Live {
    uint64_t bytes;
    uint64_t id;
    uint64_t named_by;  // ordinal + 1 of the last launch that named it
  };
  void Index(DeviceAddress address, const Live& block);
  NameOrdinal Name(std::string_view name);
  uint64_t SinceStart(uint64_t steady_ns);

  std::atomic<TraceWriter*> writer_;  // null: nothing is recorded
  const bool index_blocks_;
  uint64_t start_ns_ = 0;  // of the steady clock; 0: nothing has been recorded
  std::pmr::map<DeviceAddress, Live> live_;
  std::unordered_map<std::string, NameOrdinal> names_;
  std::string name_;              // scratch
  std::vector<uint64_t> blocks_;  // scratch
};

}  // namespace hotpack
