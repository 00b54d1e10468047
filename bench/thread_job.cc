#include "bench/thread_job.h"

#include <vector>

namespace hotpack::bench {

void ThreadJob::WarmUp(size_t threads) {
  constexpr int kSteps = 40;
  std::mt19937_64 random(1);
  std::vector<DeviceAddress> live(threads * held_ * 2, 0);
  for (int step = 0; step < kSteps; ++step) {
    engine_.Mark();
    for (DeviceAddress& address : live) Replace(&address, &random);
    engine_.WaitPlan(-1);
  }
  for (DeviceAddress address : live) engine_.Release(address, 0);
}

}  // namespace hotpack::bench
