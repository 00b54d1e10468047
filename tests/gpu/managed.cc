// A sample run that needs more than the arena can hold. The excess is in managed memory until the plan, which needs
// less, is in force (HOTPACK_OVERCOMMIT). HOTPACK_ARENA=plain:128 keeps the arena small. The device is not filled.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "tests/gpu/probe.h"

namespace hotpack::gpu {
namespace {

constexpr int kRequests = 80;  // a step
constexpr size_t kLive = 24;   // blocks at a time
constexpr size_t kSeen = 64 * kKiB;
constexpr size_t kMin = 1800 * kKiB, kSpread = 5100;  // bytes, and how many kibibytes more at most

struct Block {
  void* address = nullptr;
  size_t bytes = 0;
  unsigned char value = 0;
};

bool IsManaged(const void* address) {
  cudaPointerAttributes attributes = {};
  HOTPACK_NEED(cudaPointerGetAttributes(&attributes, address));
  return attributes.type == cudaMemoryTypeManaged;
}

// The same requests in each step, released in an order of their own: best fit leaves gaps that a plan does not.
class SampleRun {
 public:
  explicit SampleRun(const Probe& probe) : probe_(probe) {}

  void Step() {
    managed_ = 0;
    std::mt19937 random(12345);
    for (int i = 0; i < kRequests; ++i) {
      if (live_.size() == kLive) Remove(random() % live_.size());
      Add(kMin + random() % kSpread * kKiB);
    }
    while (!live_.empty()) Remove(live_.size() - 1);
  }

  int managed() const { return managed_; }  // blocks of the last step that lay in managed memory
  size_t wrong_bytes() const { return wrong_bytes_; }
  size_t blocks() const { return blocks_; }

 private:
  void Add(size_t bytes) {
    Block block;
    block.bytes = bytes;
    block.value = static_cast<unsigned char>(1 + blocks_++ % 251);
    HOTPACK_NEED(Allocate(Way::kMalloc, bytes, nullptr, &block.address));
    managed_ += IsManaged(block.address) ? 1 : 0;
    if (probe_.computes) {  // a kernel's write has the device fault the pages in
      auto* words = static_cast<uint32_t*>(block.address);
      HOTPACK_NEED(LegacyKernels().keep_writing(words, bytes / sizeof(uint32_t), WordOf(block.value), 0, nullptr));
    } else {
      HOTPACK_NEED(cudaMemsetAsync(block.address, block.value, bytes, nullptr));
    }
    live_.push_back(block);
  }

  // Its value is checked first, at both ends.
  void Remove(size_t i) {
    const Block block = live_[i];
    const auto* end = static_cast<const char*>(block.address) + block.bytes;
    wrong_bytes_ += CountOther(block.address, kSeen, block.value) + CountOther(end - kSeen, kSeen, block.value);
    HOTPACK_NEED(Release(Way::kMalloc, block.address, nullptr));
    live_[i] = live_.back();
    live_.pop_back();
  }

  const Probe& probe_;
  std::vector<Block> live_;
  size_t blocks_ = 0, wrong_bytes_ = 0;
  int managed_ = 0;
};

bool Asked() {
  const char* arena = getenv("HOTPACK_ARENA");
  const char* overcommit = getenv("HOTPACK_OVERCOMMIT");
  return arena != nullptr && std::string(arena) == "plain:128" && overcommit != nullptr &&
         std::string(overcommit).rfind("managed", 0) == 0;
}

}  // namespace

void RunManaged(Probe& probe) {
  if (!Probe::Has(cudaDevAttrConcurrentManagedAccess)) {
    probe.found->Skip("managed.run", "the device cannot fault pages in");
    return;
  }
  if (probe.hotpack && !Asked()) {
    probe.found->Skip("managed.run", "HOTPACK_ARENA=plain:128 and HOTPACK_OVERCOMMIT=managed:256 are not set");
    return;
  }
  using WaitPlan = int (*)(int);
  const auto wait = reinterpret_cast<WaitPlan>(dlsym(RTLD_DEFAULT, "hotpack_wait_plan"));
  SampleRun run(probe);
  const int steps = probe.hotpack ? probe.Rounds(16) : 2;  // the driver alone learns nothing
  int managed = 0;
  for (int step = 0; step < steps; ++step) {
    if (wait != nullptr) wait(10'000);
    run.Step();
    managed = std::max(managed, run.managed());
  }
  probe.Must(run.wrong_bytes() == 0, "managed.values", "every block keeps its value",
             std::to_string(run.wrong_bytes()) + " bytes are wrong, of " + std::to_string(run.blocks()) + " blocks");
  if (!probe.hotpack) {
    probe.found->Skip("managed.spilled", "hotpack is not preloaded");
    return;
  }
  const hotpack_stats stats = probe.Stats();
  probe.found->Check(
      managed > 0 && stats.managed_peak > 0, "managed.spilled",
      "while there is no plan, what the arena has no room for lies in managed memory",
      std::to_string(managed) + " blocks of a step, " + std::to_string(stats.managed_peak) + " bytes at once");
  probe.found->Check(stats.managed_peak <= 256 * kMiB, "managed.limit", "at most the 256 MiB that were allowed",
                     std::to_string(stats.managed_peak) + " bytes");
  probe.found->Check(run.managed() == 0 && stats.planned > 0, "managed.plan",
                     "once the plan is in force, no block does",
                     std::to_string(run.managed()) + " blocks of the last step, " + std::to_string(stats.planned) +
                         " requests by the plan");
}

}  // namespace hotpack::gpu
