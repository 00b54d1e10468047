// The order that a program itself has established between its streams, by vector clocks. It may rely on this order with
// any allocator.
//
//   stream 0   ──1──2──●──────────►     ● event: Moment {2, 0}
//   stream 1   ──1──────○──2──────►     ○ waits for it: operation 2 comes after {2, 1}
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace property {

inline constexpr int kMaxStreams = 32;  // of a program in all, destroyed ones included

// By stream the number of its operations that come before. Operations count from 1.
using Moment = std::array<uint32_t, kMaxStreams>;

inline void Join(Moment* into, const Moment& from) {
  for (int s = 0; s < kMaxStreams; ++s) (*into)[s] = std::max((*into)[s], from[s]);
}

enum class StreamKind : uint8_t { kLegacy, kBlocking, kNonBlocking };

// The established order of a program. Not thread-safe.
class KnownOrder {
 public:
  // `implicit`: the program relies on the implicit waits of the legacy stream (CUDA driver API, "Stream synchronization
  // behavior").
  explicit KnownOrder(bool implicit) : implicit_(implicit) {}

  // Adds a stream and returns its number; -1 if there are too many. `device`: its context's.
  int AddStream(int device, StreamKind kind) {
    if (streams_.size() == kMaxStreams) return -1;
    streams_.push_back({Moment{}, device, kind});
    return static_cast<int>(streams_.size()) - 1;
  }

  // Adds an operation of the stream and returns its number.
  uint32_t Submit(int stream) {
    Stream& s = streams_[stream];
    for (const Stream& other : streams_) {
      if (IsBefore(other, s)) Join(&s.clock, other.clock);
    }
    return Mark(stream);
  }
  // Adds a moment of the stream without work. Later records on the stream come after it.
  uint32_t Mark(int stream) { return ++streams_[stream].clock[stream]; }
  // Returns an event recorded on the stream now.
  Moment Record(int stream) {
    Submit(stream);
    return streams_[stream].clock;
  }
  void Wait(int stream, const Moment& moment) {
    Submit(stream);
    Join(&streams_[stream].clock, moment);
  }
  // Assumes without a wait that `stream` comes after the operation. For wrong programs.
  void Pretend(int stream, int other, uint32_t tick) {
    uint32_t& known = streams_[stream].clock[other];
    known = std::max(known, tick);
  }

  void HostSawStream(int stream) {
    if (streams_[stream].kind == StreamKind::kLegacy) Submit(stream);
    Join(&host_, streams_[stream].clock);
  }
  void HostSawDevice(int device) {
    for (const Stream& s : streams_) {
      if (s.device == device) Join(&host_, s.clock);
    }
  }

  // Whether later work on `stream` comes after operation `tick` of `other`.
  bool Covers(int stream, int other, uint32_t tick) const {
    return streams_[stream].clock[other] >= tick || host_[other] >= tick;
  }
  // The same for the very next operation, with the implicit order of the stream's kind.
  bool CoversNext(int stream, int other, uint32_t tick) const {
    return Covers(stream, other, tick) || std::any_of(streams_.begin(), streams_.end(), [&](const Stream& s) {
             return IsBefore(s, streams_[stream]) && s.clock[other] >= tick;
           });
  }
  bool Covers(int stream, const Moment& moment) const {
    for (int s = 0; s < kMaxStreams; ++s) {
      if (moment[s] != 0 && !Covers(stream, s, moment[s])) return false;
    }
    return true;
  }

 private:
  struct Stream {
    Moment clock;
    int device;
    StreamKind kind;
  };
  bool IsBefore(const Stream& a, const Stream& b) const {
    const bool pair = (a.kind == StreamKind::kLegacy && b.kind == StreamKind::kBlocking) ||
                      (a.kind == StreamKind::kBlocking && b.kind == StreamKind::kLegacy);
    return implicit_ && pair && a.device == b.device;
  }

  bool implicit_;
  std::vector<Stream> streams_;
  Moment host_{};
};

}  // namespace property
