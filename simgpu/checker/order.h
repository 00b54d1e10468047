// The happens-before order of the simulated device: one vector clock per stream, and one for the host.
//
// The host is one party, not one per thread. The driver sees the calls of all host threads in one order (its lock).
// Work that any thread has waited for is finished for all later submissions of any thread. So orders that only the
// program knows (mutexes, joins) are never missed. An order that two threads reached by luck is accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace simgpu {

// A moment of one stream: its tick-th operation. tick ≥ 1.
struct Epoch {
  int stream = 0;
  uint64_t tick = 0;
};

// A moment: the last operation of each stream, indexed by stream. Missing entries count as 0.
struct Clock : std::vector<uint64_t> {
  uint64_t end = 0;  // in virtual time, nanoseconds: when all of them are done (virtual_time.h)
};

enum class StreamKind : uint8_t {
  kLegacy,  // the NULL stream: it and the blocking streams of its group wait for each other
  kBlocking,
  kNonBlocking,
};

// Not thread-safe: used under the driver's lock. A group is a context.
class Order {
 public:
  int AddStream(int group, StreamKind kind);
  void RemoveStream(int stream);  // its unfinished work stays unfinished

  // Submits one operation: after the stream's earlier ones, and in the order that the stream's kind implies.
  // O(streams). (It also comes after all work that the host has seen finished; Before and Finished account for that.)
  Epoch Submit(int stream);

  // In virtual time: the last operation of the stream takes `nanoseconds`, from the end of all that it comes after.
  // `engine`: it also begins after that moment, and its end is the next such moment.
  void Take(int stream, uint64_t nanoseconds, uint64_t* engine = nullptr);

  // Returns the clock of the stream's last operation.
  const Clock& At(int stream) const { return streams_[stream].clock; }

  // Returns the moment of all operations submitted to the group so far, also on removed streams. O(streams²).
  Clock AtGroup(int group) const;

  // The stream's next operation comes after `moment` (a recorded event).
  void Wait(int stream, const Clock& moment);

  // The next operation of each stream of the group comes after `moment`; so does the first one of a stream added later.
  // Adds no order between the group's streams. O(streams²).
  void WaitGroup(int group, const Clock& moment);

  void HostSaw(const Clock& moment);  // the host waited until `moment`, in virtual time too
  void HostSawStream(int stream) { HostSaw(streams_[stream].clock); }
  void HostSawGroup(int group);  // the host waited for the whole context

  // Returns true if the host knows that the operation is finished.
  bool Finished(Epoch e) const { return Reached(host_, e); }
  // Returns true if the host knows that all of `moment` is finished.
  bool Finished(const Clock& moment) const;
  // Returns true if the operation comes before the last one submitted to `stream`.
  bool Before(Epoch e, int stream) const { return Finished(e) || Reached(streams_[stream].clock, e); }

 private:
  struct Stream {
    Clock clock;
    uint64_t submitted = 0;  // in virtual time: the host's, at the last submission
    int group = -1;
    StreamKind kind = StreamKind::kBlocking;
    bool removed = false;
  };

  static bool Reached(const Clock& clock, Epoch e) {
    return static_cast<size_t>(e.stream) < clock.size() && clock[e.stream] >= e.tick;
  }
  uint64_t Ticks(int stream) const;
  void Join(int stream, int other);
  void BeginInTime(int stream);
  void JoinDefaultStream(int stream);
  // Submits an operation that comes after the stream's own earlier ones and after `moment`, whatever the stream's kind.
  // The stream's number then stays taken until the host knows `moment`.
  void WaitAlone(int stream, const Clock& moment);

  std::vector<Stream> streams_;
  std::vector<int> removed_;
  std::map<int, Clock> waits_;  // by group: the moment of WaitGroup; streams added later come after it
  Clock host_;
};

}  // namespace simgpu
