// Plays a sequence through an allocator, and times it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/request_allocator.h"
#include "bench/request_sequence.h"

namespace hotpack::bench {

struct TimingOptions {
  uint64_t iterations = 200;  // timed ones
  uint64_t warm_up = 20;      // at least; while hotpack does not serve by script, up to ten times as many
  bool launches = false;      // each block is also used in the timed iterations
};

// What hotpack says of itself while the iterations ran. All zero, and not `present`, where hotpack answers nothing.
struct Served {
  bool present = false;
  bool by_script = false;  // the last iterations of the warm-up were served by script as a whole
  uint64_t warm_up = 0;    // iterations it took
  uint64_t requests = 0;   // in the timed iterations
  uint64_t planned = 0;    // of these, by script
};

class RequestPlayer {
 public:
  // All must outlive the player.
  RequestPlayer(const RequestSequence& sequence, const RequestAllocator& allocator, RequestDevice& device)
      : sequence_(sequence), allocator_(allocator), device_(device), pointers_(sequence.slots, nullptr) {}

  // Warms up (each block is used on the device), then returns one sample for each stretch of at least 256 pairs:
  // nanoseconds a pair. The clock is read between stretches only. Empty if a call failed: error() says which.
  std::vector<double> Time(const TimingOptions& options, Served* served);
  // Releases what is still held.
  void ReleaseAll();
  const std::string& error() const { return error_; }

 private:
  bool WarmUp(const TimingOptions& options, Served* served);
  template <bool kTouch>
  bool PlayIteration();
  bool Fail(const char* call, int code, uint64_t bytes);

  const RequestSequence& sequence_;
  const RequestAllocator allocator_;
  RequestDevice& device_;
  std::vector<void*> pointers_;
  size_t form_ = 0;
  std::string error_;
};

}  // namespace hotpack::bench
