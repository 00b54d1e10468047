// The happens-before order of the simulated device: one vector clock a stream, and one for the host.
//
// The host is one party, not one a thread. The driver sees the calls of all host threads in one order (its lock), and
// work that any thread has waited for is finished for whatever any thread submits later. Orders that only the program
// knows (mutexes, joins) are therefore never missed; an order that two threads reached by luck is not doubted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace simgpu {

// A moment of one stream: the tick-th operation submitted to it. tick ≥ 1.
struct Epoch {
  int stream = 0;
  uint64_t tick = 0;
};

using Clock = std::vector<uint64_t>;  // indexed by stream; what is beyond the end counts as 0

enum class StreamKind : uint8_t {
  kLegacy,  // the NULL stream: waits for, and is waited for by, the blocking streams of its group
  kBlocking,
  kNonBlocking,
};

// Not thread-safe: used under the driver's lock. A group is a context.
class Order {
 public:
  int AddStream(int group, StreamKind kind);
  void RemoveStream(int stream);  // its unfinished work stays unfinished

  // Submits one operation: after the stream's earlier ones, and after what the stream's kind implies. O(streams).
  // (It also comes after everything the host has seen finished: Before and Finished say so.)
  Epoch Submit(int stream);

  // The clock of the stream's last operation.
  const Clock& At(int stream) const { return streams_[stream].clock; }

  // All operations submitted to the group so far, removed streams' too. O(streams²).
  Clock AtGroup(int group) const;

  // The stream's next operation comes after `moment` (an event that was recorded).
  void Wait(int stream, const Clock& moment);

  // The next operation of each stream of the group comes after `moment`, and so does the first one of a stream that is
  // added later. Adds no order between the group's streams. O(streams²).
  void WaitGroup(int group, const Clock& moment);

  void HostSaw(const Clock& moment);  // the host waited until `moment`
  void HostSawStream(int stream) { HostSaw(streams_[stream].clock); }
  void HostSawGroup(int group);  // the host waited for the whole context

  // The host knows that the operation is finished.
  bool Finished(Epoch e) const { return Reached(host_, e); }
  // All of `moment` is known to be finished.
  bool Finished(const Clock& moment) const;
  // The operation comes before the last one submitted to `stream`.
  bool Before(Epoch e, int stream) const { return Finished(e) || Reached(streams_[stream].clock, e); }

 private:
  struct Stream {
    Clock clock;
    int group = -1;
    StreamKind kind = StreamKind::kBlocking;
    bool removed = false;
  };

  static bool Reached(const Clock& clock, Epoch e) {
    return static_cast<size_t>(e.stream) < clock.size() && clock[e.stream] >= e.tick;
  }
  uint64_t Ticks(int stream) const;
  void Join(int stream, int other);
  void JoinDefaultStream(int stream);
  // Submits an operation that comes after the stream's own earlier ones and after `moment`, whatever the stream's kind.
  // With it the stream's number is not free for others until the host knows `moment`.
  void WaitAlone(int stream, const Clock& moment);

  std::vector<Stream> streams_;
  std::vector<int> removed_;
  std::map<int, Clock> waits_;  // by group: what WaitGroup was told; streams that are added come after it
  Clock host_;
};

}  // namespace simgpu
