#include "preload/serve/driver_pool_choice.h"

#include <algorithm>
#include <array>

#include "preload/process/driver_access.h"
#include "preload/process/log.h"
#include "runtime/base/request_timer.h"

namespace hotpack {
namespace {

constexpr int kWarmUp = 8, kSamples = 33;

// Returns nanoseconds of one allocation from the driver's pool, the median of some; 0: not available.
uint64_t MeasurePool(const CudaDriver& driver, uint64_t bytes, CUstream stream) {
  if (driver.MemAllocAsync == nullptr || driver.MemFreeAsync == nullptr) return 0;
  std::array<int64_t, kSamples> samples;
  for (int i = -kWarmUp; i < kSamples; ++i) {
    CUdeviceptr address = 0;
    const int64_t start = RequestTimer::Now();
    if (driver.MemAllocAsync(&address, bytes, stream) != CUDA_SUCCESS) return 0;
    const int64_t took = RequestTimer::Now() - start;
    if (driver.MemFreeAsync(address, stream) != CUDA_SUCCESS) return 0;
    if (i >= 0) samples[static_cast<size_t>(i)] = took;
  }
  std::nth_element(samples.begin(), samples.begin() + kSamples / 2, samples.end());
  return static_cast<uint64_t>(std::max<int64_t>(1, samples[kSamples / 2]));
}

}  // namespace

bool DriverPoolIsFaster(ContextArena* arena, uint64_t bytes, CUstream stream) {
  if (arena->engine->service() == Engine::Service::kLeave) return true;
  uint64_t ours = 0;
  if (!arena->engine->BeginComparison(&ours)) return false;
  const CudaDriver* driver = Driver();
  const uint64_t pool = driver != nullptr ? MeasurePool(*driver, bytes, stream) : 0;
  if (pool == 0 || ours <= pool + pool / 8) return false;
  arena->engine->LeaveToDriver();
  Log("nothing repeats, and best fit takes %llu ns where the driver's pool takes %llu: allocations are left to it",
      static_cast<unsigned long long>(ours), static_cast<unsigned long long>(pool));
  return true;
}

}  // namespace hotpack
