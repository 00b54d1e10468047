// Makes a recording from events with the process's own addresses, streams and threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "profiler/event.h"

namespace hotpack {

// An event's members other than the address. `stream`: the handle; `thread`: any number that tells threads apart;
// `time_ns`: since the recording began.
struct EventContext {
  uint64_t stream = 0;
  uint64_t thread = 0;
  uint64_t time_ns = 0;
};

// Collects events in order and makes a valid recording of them. Blocks live before the first event appear at their
// release, or by AddLive(); they are allocated at the beginning of the recording. Not thread-safe.
class RecordingBuilder {
 public:
  // Sizes are 1 to kMaxRecordedBytes (profiler/trace_file.h). An allocation at a live address means that a release is
  // missing: the old block is released just before (missed_releases()).
  void Allocate(uint64_t address, uint64_t bytes, const EventContext& context);
  // Of a block that was not allocated here: adds one of `bytes` bytes, live from the beginning.
  void Release(uint64_t address, uint64_t bytes, const EventContext& context);
  void Mark(EventKind kind, uint64_t time_ns);
  // Adds a block that is live from the beginning to the end.
  void AddLive(uint64_t bytes, uint64_t stream);

  bool IsLive(uint64_t address) const { return live_.contains(address); }
  uint64_t allocations() const { return allocations_; }  // calls of Allocate()
  uint64_t live_before() const { return before_.size(); }
  uint64_t missed_releases() const { return missed_; }

  // Returns the recording and empties the builder. O(events).
  //  - Blocks are numbered in the order of their allocations.
  //  - A stream with a handle below 2^32 keeps it as its ordinal (the default stream, CUDA's special handles, numbers
  //    that stand for streams). Pointers get the other ordinals from 1 on as they appear.
  //  - Threads are numbered as they appear. All beyond 65535 share that number.
  Trace Finish();

 private:
  struct Live {
    uint64_t id;
    uint64_t bytes;
  };
  struct Before {
    uint64_t bytes;
    uint32_t stream;
  };
  Event Make(EventKind kind, const EventContext& context);
  uint32_t StreamIndex(uint64_t stream);
  std::vector<uint32_t> StreamOrdinals() const;

  std::vector<Event> events_;  // ids: kBefore and an index in before_, or the ordinal of the allocation; streams: index
  std::vector<Before> before_;
  absl::flat_hash_map<uint64_t, Live> live_;
  std::vector<uint64_t> streams_;
  absl::flat_hash_map<uint64_t, uint32_t> stream_index_;
  absl::flat_hash_map<uint64_t, uint16_t> threads_;
  uint64_t allocations_ = 0;
  uint64_t missed_ = 0;
};

// Returns the number of blocks that a recording never releases.
uint64_t UnreleasedBlocks(const Trace& trace);

}  // namespace hotpack
