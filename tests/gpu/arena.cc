// Blocks are disjoint, aligned to 512 bytes, and keep their contents while requests of mixed sizes come and go: at
// random, and in iterations that repeat, so that hotpack follows a plan.
#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/gpu/probe.h"

namespace hotpack::gpu {
namespace {

constexpr size_t kMaxLive = 128 * kMiB;
constexpr uint64_t kAlignment = 512;

// Live blocks, each filled with a byte of its own. Everything is on the legacy default stream.
class Blocks {
 public:
  explicit Blocks(const Probe& probe) : probe_(probe) {}

  void Add(Way way, size_t bytes) {
    void* p = nullptr;
    HOTPACK_NEED(Allocate(way, bytes, nullptr, &p));
    const uint64_t address = reinterpret_cast<uint64_t>(p);
    if (address % kAlignment != 0) ++misaligned_;
    const auto next = live_.lower_bound(address);
    if (next != live_.end() && address + bytes > next->first) ++overlaps_;
    if (next != live_.begin() && std::prev(next)->first + std::prev(next)->second > address) ++overlaps_;
    // 251 is prime: blocks that follow one another differ.
    const auto value = static_cast<unsigned char>(1 + count_++ % 251);
    HOTPACK_NEED(cudaMemsetAsync(p, value, bytes, nullptr));
    live_.emplace(address, bytes);
    blocks_.push_back({p, bytes, way, value});
    live_bytes_ += bytes;
  }

  // Takes the i-th oldest block away, after a look at its value.
  void Remove(size_t i) {
    const Block block = blocks_[i];
    wrong_bytes_ += CountOther(block.address, block.bytes, block.value);
    HOTPACK_NEED(Release(block.way, block.address, nullptr));
    blocks_.erase(blocks_.begin() + static_cast<ptrdiff_t>(i));
    live_.erase(live_.find(reinterpret_cast<uint64_t>(block.address)));
    live_bytes_ -= block.bytes;
  }

  void RemoveAll() {
    while (!blocks_.empty()) Remove(blocks_.size() - 1);
  }

  size_t size() const { return blocks_.size(); }
  size_t live_bytes() const { return live_bytes_; }

  void Judge(const std::string& name) const {
    const std::string seen = " of " + std::to_string(count_) + " blocks";
    probe_.Must(overlaps_ == 0, name + ".disjoint", "no block overlaps a live one", std::to_string(overlaps_) + seen);
    probe_.Must(misaligned_ == 0, name + ".aligned", "every address is a multiple of 512",
                std::to_string(misaligned_) + " are not," + seen);
    probe_.Must(wrong_bytes_ == 0, name + ".values", "every block keeps its value",
                std::to_string(wrong_bytes_) + " bytes are wrong," + seen);
  }

 private:
  struct Block {
    void* address;
    size_t bytes;
    Way way;
    unsigned char value;
  };
  const Probe& probe_;
  std::multimap<uint64_t, size_t> live_;  // address → bytes; a faulty allocator may give one address twice
  std::vector<Block> blocks_;             // by age
  size_t live_bytes_ = 0, count_ = 0, overlaps_ = 0, misaligned_ = 0, wrong_bytes_ = 0;
};

// Sizes from 1 byte to 4 MiB, each order of magnitude as likely as another.
size_t RandomSize(std::mt19937* random) {
  const int bits = std::uniform_int_distribution<int>(0, 21)(*random);
  return (size_t{1} << bits) + std::uniform_int_distribution<size_t>(0, size_t{1} << bits)(*random);
}

void RandomTraffic(const Probe& probe) {
  std::mt19937 random(20180606);
  Blocks blocks(probe);
  const int operations = probe.Rounds(10000);
  for (int i = 0; i < operations; ++i) {
    const bool full = blocks.live_bytes() > kMaxLive - 4 * kMiB;
    if (blocks.size() == 0 || (!full && random() % 100 < 55)) {
      blocks.Add(random() % 3 == 0 ? Way::kAsync : Way::kMalloc, RandomSize(&random));
    } else {
      blocks.Remove(std::uniform_int_distribution<size_t>(0, blocks.size() - 1)(random));
    }
  }
  blocks.RemoveAll();
  blocks.Judge("arena.random");
}

void WaitForPlan() {
  using WaitPlan = int (*)(int);
  if (const auto wait = reinterpret_cast<WaitPlan>(dlsym(RTLD_DEFAULT, "hotpack_wait_plan"))) wait(10'000);
}

// As training does: activations of a forward pass, given back in reverse, with short-lived blocks in between.
void Iteration(Blocks* blocks, size_t kept) {
  constexpr size_t kLayers = 40;
  std::mt19937 random(7);  // the same sizes each time
  for (size_t layer = 0; layer < kLayers; ++layer) {
    blocks->Add(Way::kMalloc, 64 * kKiB + RandomSize(&random) / 4);
    blocks->Add(Way::kMalloc, 4 * kKiB + RandomSize(&random) / 8);
    blocks->Remove(blocks->size() - 1);
  }
  while (blocks->size() > kept) {
    blocks->Add(Way::kMalloc, 16 * kKiB + RandomSize(&random) / 8);
    blocks->Remove(blocks->size() - 2);
    blocks->Remove(blocks->size() - 1);
  }
}

void RepeatedTraffic(const Probe& probe) {
  Blocks blocks(probe);
  for (int i = 0; i < 5; ++i) blocks.Add(Way::kMalloc, 300 * kKiB);  // live throughout, as parameters do
  const uint64_t planned_before = probe.Stats().planned;
  const int iterations = probe.Rounds(24);
  for (int i = 0; i < iterations; ++i) {
    Iteration(&blocks, 5);
    WaitForPlan();
  }
  const uint64_t planned = probe.Stats().planned - planned_before;
  blocks.RemoveAll();
  blocks.Judge("arena.repeated");
  if (!probe.hotpack) {
    probe.found->Skip("arena.repeated.planned", "hotpack is not preloaded");
  } else {
    probe.found->Check(planned > 0, "arena.repeated.planned", "requests are answered from a plan",
                       std::to_string(planned) + " in " + std::to_string(iterations) + " iterations");
  }
}

}  // namespace

void RunArena(Probe& probe) {
  RepeatedTraffic(probe);
  RandomTraffic(probe);
}

}  // namespace hotpack::gpu
