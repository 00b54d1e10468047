// What pages cost a job in virtual time, with the published costs of calls (simgpu/README.md, Virtual time).
// page_time_client MODE [RECORDING SCALE]. Prints the time of calls for pages, waits included: of the longest steady
// step in the later half, and of each step.
#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "preload/torch/hotpack_torch.h"
#include "profiler/trace_file.h"
#include "runtime/include/hotpack.h"
#include "simgpu/checker.h"
#include "tests/preload/client_api.h"
#include "tools/replay/repeat_step.h"

namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr int kSteps = 80;

CUstream stream = nullptr;

struct Block {
  void* address = nullptr;
  uint64_t bytes = 0;
};

Block Take(uint64_t bytes) {
  Block block{hotpack_torch_malloc(static_cast<ssize_t>(bytes), 0, stream), bytes};
  CHECK(block.address != nullptr);
  OK(cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(block.address), 0, bytes, stream));
  return block;
}

void Drop(const Block& block) { hotpack_torch_free(block.address, static_cast<ssize_t>(block.bytes), 0, stream); }

hotpack_stats Stats() {
  hotpack_stats stats{};
  stats.steady_iteration = -1;
  hotpack_get_stats(&stats, sizeof stats);
  return stats;
}

// Nanoseconds that calls for pages have taken so far, and waits of the host for the device.
uint64_t PageTime() {
  uint64_t sum = simgpuTimeWaited();
  for (const char* call : {"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease", "cuMemGetInfo",
                           "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize"}) {
    sum += simgpuTimeInCalls(call);
  }
  return sum;
}

// The steps of a job. The program itself waits for the device only between them.
class Steps {
 public:
  void Begin() {
    const bool steady = Stats().steady_iteration >= 0;
    steps_.push_back({steady, PageTime()});
  }
  void End() {
    steps_.back().time = PageTime() - steps_.back().time;
    steps_.back().steady &= Stats().steady_iteration >= 0;
    OK(cuCtxSynchronize());
    hotpack_wait_plan(-1);
  }
  // Of the later half of the steps: all shapes of the job have been seen.
  void Print() const {
    uint64_t longest = 0;
    int steady = 0;
    for (size_t i = steps_.size() / 2; i < steps_.size(); ++i) {
      if (!steps_[i].steady) continue;
      longest = std::max(longest, steps_[i].time);
      ++steady;
    }
    printf("steady %d\nlongest ms %.3f\nsteps", steady, static_cast<double>(longest) / 1e6);
    for (const Step& step : steps_) printf(" %.3f", static_cast<double>(step.time) / 1e6);
    printf("\n");
  }

 private:
  struct Step {
    bool steady = false;
    uint64_t time = 0;  // nanoseconds
  };
  std::vector<Step> steps_;
};

// A recorded job, its steady step played 20 more times, its sizes times `scale`.
void Recording(Steps* steps, const std::string& path, uint64_t scale) {
  const absl::StatusOr<hotpack::TraceFile> file = hotpack::LoadTrace(path);
  CHECK(file.ok());
  std::unordered_map<uint64_t, Block> live;
  steps->Begin();
  for (const hotpack::Event& event : hotpack::RepeatSteadyStep(file->trace, 20).events) {
    if (event.kind == hotpack::EventKind::kMark) {
      steps->End();
      steps->Begin();
    } else if (event.kind == hotpack::EventKind::kAllocate) {
      live[event.id] = Take(event.bytes * scale);
    } else if (event.kind == hotpack::EventKind::kRelease) {
      Drop(live.at(event.id));
      live.erase(event.id);
    }
  }
  steps->End();
}

// A pass forth and back over `layers` layers: activations pile up, then go.
void Pass(uint64_t mebibytes, int layers) {
  std::vector<Block> kept;
  for (int i = 0; i < layers; ++i) {
    kept.push_back(Take(mebibytes * kMiB + i * kMiB / 4));
    Drop(Take(mebibytes * kMiB / 2 + i * kMiB / 8));
  }
  for (int i = layers; i-- > 0;) {
    Drop(Take(mebibytes * kMiB / 3 + i * kMiB / 8));
    Drop(kept[i]);
  }
}

// Two hills in a step, and a long valley of small requests between them.
void Hills(Steps* steps) {
  for (int step = 0; step < kSteps; ++step) {
    steps->Begin();
    Pass(64, 24);
    for (int i = 0; i < 3000; ++i) Drop(Take(kMiB / 2));
    Pass(48, 32);
    steps->End();
  }
}

// The same, but the valley is not monitored, and long.
void Interrupted(Steps* steps) {
  for (int step = 0; step < kSteps; ++step) {
    steps->Begin();
    Pass(64, 24);
    hotpack_interrupt();
    for (int i = 0; i < 20000; ++i) Drop(Take(kMiB / 2));
    hotpack_resume();
    steps->End();
  }
}

// Four shapes of step by turns, ten steps each.
void Shapes(Steps* steps) {
  for (int step = 0; step < 4 * kSteps; ++step) {
    const int k = step / 10 % 4;
    steps->Begin();
    Pass(24 * (k + 1), 10 + 3 * k);
    steps->End();
  }
}

// A higher evaluation after each ten steps.
void Evaluation(Steps* steps) {
  for (int step = 0; step < 2 * kSteps; ++step) {
    steps->Begin();
    if (step % 10 == 9) {
      for (int i = 0; i < 20; ++i) Drop(Take(400 * kMiB + i * kMiB));
    } else {
      Pass(16, 16);
    }
    steps->End();
  }
}

// Of every ten steps the last one is followed by a long evaluation in which nothing repeats.
void Parked(Steps* steps) {
  uint64_t drawn = 1;
  const auto draw = [&drawn](uint64_t below) {
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (drawn >> 33) % below;
  };
  for (int step = 0; step < 2 * kSteps; ++step) {
    steps->Begin();
    Pass(64, 24);
    for (int i = 0; step % 10 == 9 && i < 20000; ++i) Drop(Take((draw(8000) + 1) * 512));
    steps->End();
  }
}

// Weights that stay, and gradients that live from step to step.
void Carried(Steps* steps) {
  std::vector<Block> weights, gradients;
  for (int i = 0; i < 30; ++i) weights.push_back(Take((i % 7 + 1) * kMiB));
  for (int step = 0; step < kSteps; ++step) {
    steps->Begin();
    for (const Block& block : gradients) Drop(block);
    gradients.clear();
    Pass(32, 16);
    for (const Block& block : weights) gradients.push_back(Take(block.bytes));
    steps->End();
  }
}

constexpr std::pair<const char*, void (*)(Steps*)> kModes[] = {{"hills", Hills},   {"interrupted", Interrupted},
                                                               {"shapes", Shapes}, {"evaluation", Evaluation},
                                                               {"parked", Parked}, {"carried", Carried}};

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc >= 2);
  OK(cuInit(0));
  CUcontext context = nullptr;
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  hotpack_torch_init(1);
  Steps steps;
  const std::string mode = argv[1];
  if (mode == "recording" && argc == 4) Recording(&steps, argv[2], strtoull(argv[3], nullptr, 10));
  for (const auto& [name, run] : kModes) {
    if (mode == name) run(&steps);
  }
  steps.Print();
}
