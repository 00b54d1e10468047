// Tells when a job of an envelope has come to rest: its iterations have become the same. A script serves what repeats
// with fewer instructions, and without driver calls.
#pragma once

#include <cstdint>

#include "profiler/history.h"

namespace hotpack {

// Guarded by the engine's lock.
class RestWatch {
 public:
  enum class Advice : uint8_t { kNone, kPlan, kTakeOver };

  // An iteration of an envelope has ended. `same`: it has the sizes of the one before. `driver_calls`: so far.
  void NoteIteration(bool same, uint64_t driver_calls);
  // What to do now. `pending`: a script waits. kPlan: plan one, and call NotePosted if that begins. kTakeOver: ask
  // MayTakeOver about the pending one, which is of the present rest.
  Advice Next(bool pending) const;
  void NotePosted() { at_post_ = same_; }
  // Returns whether the script is to serve from now on: the arena will hold hardly more than the `reserved` bytes that
  // it holds now, or the envelope calls the driver in most iterations. `most_held`: bytes that the arena holds at most
  // while the script takes over. The next script needs four times as many equal iterations.
  bool MayTakeOver(uint64_t most_held, uint64_t reserved);

 private:
  bool CallsTheDriver() const { return 2 * with_calls_ >= same_; }  // in most iterations
  uint64_t Needed() const;

  uint64_t same_ = 0;        // iterations in a row that were as the one before
  uint64_t longest_ = 0;     // of these, before one that differed
  uint64_t more_ = 1;        // times as many are needed
  uint64_t at_post_ = 0;     // same_, when one was planned; 0: not in this row
  uint64_t with_calls_ = 0;  // of these iterations: in which the driver was called
  uint64_t calls_ = 0;       // of the driver, at the last mark
};

// Returns whether `length` requests from ordinal `begin` on have the sizes of those behind them. O(length).
bool SameRequests(const History& history, uint64_t begin, uint64_t length);

}  // namespace hotpack
