// How much of a copy on a stream of its own runs during a kernel on another, while both streams request and release
// memory in each step. Waits that the program did not ask for take the overlap away.
#include <dlfcn.h>

#include <algorithm>

#include "tests/gpu/probe.h"

namespace hotpack::gpu {
namespace {

constexpr size_t kBatch = 32 * kMiB;     // bytes copied a step: about a millisecond
constexpr uint64_t kKernel = 1'500'000;  // ns
constexpr int kSteps = 20;               // of a measurement; on the simulated device kSimulatedSteps
constexpr int kSimulatedSteps = 2;

class Pipeline {
 public:
  Pipeline(Way way, int steps) : way_(way), steps_(steps) { HOTPACK_NEED(cudaMallocHost(&host_, kBatch)); }
  ~Pipeline() { cudaFreeHost(host_); }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Returns the nanoseconds of some steps. Blocks are released a step later, as a loader that prefetches does.
  double Steps(bool compute, bool copy) {
    HOTPACK_NEED(cudaDeviceSynchronize());
    const Stopwatch watch;
    void *work = nullptr, *batch = nullptr;
    for (int step = 0; step < steps_; ++step) {
      if (compute) Compute(&work);
      if (copy) Copy(&batch);
    }
    if (work != nullptr) HOTPACK_NEED(Release(way_, work, compute_));
    if (batch != nullptr) HOTPACK_NEED(Release(way_, batch, copy_));
    HOTPACK_NEED(cudaDeviceSynchronize());
    return watch.Nanoseconds();
  }

 private:
  void Compute(void** before) {
    void* work = nullptr;
    HOTPACK_NEED(Allocate(way_, 8 * kMiB, compute_, &work));
    HOTPACK_NEED(LegacyKernels().keep_writing(static_cast<uint32_t*>(work), 1024, 7, kKernel, compute_));
    if (*before != nullptr) HOTPACK_NEED(Release(way_, *before, compute_));
    *before = work;
  }
  void Copy(void** before) {
    void* batch = nullptr;
    HOTPACK_NEED(Allocate(way_, kBatch, copy_, &batch));
    HOTPACK_NEED(cudaMemcpyAsync(batch, host_, kBatch, cudaMemcpyHostToDevice, copy_));
    if (*before != nullptr) HOTPACK_NEED(Release(way_, *before, copy_));
    *before = batch;
  }

  const Way way_;
  const int steps_;
  void* host_ = nullptr;
  const Stream compute_, copy_;
};

void WaitForPlan() {
  using WaitPlan = int (*)(int);
  if (const auto wait = reinterpret_cast<WaitPlan>(dlsym(RTLD_DEFAULT, "hotpack_wait_plan"))) wait(2'000);
}

void Measure(const Probe& probe, Way way) {
  const std::string name = std::string("overlap.") + WayName(way);
  Pipeline pipeline(way, probe.simulated ? kSimulatedSteps : kSteps);
  for (int i = 0; i < 3; ++i) {  // until hotpack has a plan
    pipeline.Steps(true, true);
    WaitForPlan();
  }
  std::vector<double> shares;
  for (int round = 0; round < (probe.simulated ? 1 : probe.Rounds(14)); ++round) {
    const double compute = pipeline.Steps(true, false), copy = pipeline.Steps(false, true);
    const double both = pipeline.Steps(true, true);
    shares.push_back((compute + copy - both) / std::min(compute, copy));
  }
  if (probe.simulated) {
    probe.found->Skip(name, "nothing runs at the same time on the simulated device; every call succeeded");
    return;
  }
  probe.found->AddFigure(name, "share", shares);
  probe.found->Pass(name, "any share: gpu_check compares hotpack's with the driver's",
                    std::to_string(shares.size()) + " rounds");
}

}  // namespace

void RunOverlap(Probe& probe) {
  Measure(probe, Way::kAsync);
  Measure(probe, Way::kMalloc);
}

}  // namespace hotpack::gpu
