// Plays a sequence through an allocator and measures its time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/request_allocator.h"
#include "bench/request_sequence.h"

namespace hotpack::bench {

struct TimingOptions {
  uint64_t iterations = 200;  // timed ones
  // At least so many. While hotpack does not serve by script, up to ten times as many.
  uint64_t warm_up = 20;
  bool launches = false;  // each block is also used in the timed iterations
};

// hotpack's own figures for the iterations. All zero, and not `present`, if hotpack is not in the process.
struct Served {
  bool present = false;
  bool by_script = false;  // the last iterations of the warm-up were served by script as a whole
  uint64_t warm_up = 0;    // iterations it took
  uint64_t requests = 0;   // in the timed iterations
  uint64_t planned = 0;    // of these, by script
};

class RequestPlayer {
 public:
  // The arguments must outlive the player.
  RequestPlayer(const RequestSequence& sequence, const RequestAllocator& allocator, RequestDevice& device)
      : sequence_(sequence), allocator_(allocator), device_(device), pointers_(sequence.slots, nullptr) {}

  // Warms up, with each block used on the device. Then returns one sample for each stretch of at least 256 pairs:
  // nanoseconds per pair. The clock is read between stretches only. Returns an empty vector if a call failed, which
  // error() names.
  std::vector<double> Time(const TimingOptions& options, Served* served);
  // Releases all held blocks.
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
