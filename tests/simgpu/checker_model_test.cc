// The checker against a model that keeps the whole history: every operation with the set of operations before it, every
// block with its users. Random programs of allocations, uses, events and synchronisations; a failing one prints its
// seed.
#include <gtest/gtest.h>

#include <array>
#include <bitset>
#include <cstdlib>
#include <optional>
#include <random>
#include <vector>

#include "simgpu/checker/checker.h"
#include "simgpu/checker/report.h"

namespace simgpu_test {
namespace {

constexpr int kMostOperations = 256, kStreams = 5, kSlots = 12;
constexpr uint64_t kBase = 1 << 20, kSlotBytes = 512;
using Set = std::bitset<kMostOperations>;

// All addresses are one allocator's arena, mapped and accessible.
class Arena final : public simgpu::MemoryView {
 public:
  simgpu::Region Find(uint64_t) override {
    return {simgpu::RegionKind::kMapped, 0, ~uint64_t{0}, true, &arena_, 0, &uses_};
  }
  uint64_t Generation() const override { return 1; }

 private:
  bool arena_ = true;
  simgpu::UseSet uses_;
};

struct ModelBlock {
  int begin, end;  // slots
  Set users;
  bool live = true;
  bool reported = false;  // the checker reports a block once
};

class Model {
 public:
  explicit Model(uint32_t seed) : random_(seed), checker_(&order_, &arena_, true) {
    // Stream 0 is the legacy default stream, 1 and 2 wait for it, 3 and 4 do not.
    for (int s = 0; s < kStreams; ++s) {
      order_.AddStream(1, s == 0  ? simgpu::StreamKind::kLegacy
                          : s < 3 ? simgpu::StreamKind::kBlocking
                                  : simgpu::StreamKind::kNonBlocking);
    }
  }

  // False: the checker and the model disagree.
  bool Run(int steps) {
    for (int i = 0; i < steps && operations_ < kMostOperations - 1; ++i) {
      if (!Step()) return false;
    }
    return true;
  }

 private:
  bool Step() {
    switch (random_() % 16) {
      case 0:
      case 1:
      case 2:
        return Give();
      case 3:
      case 4:
        return Return();
      case 5:
        return Record();
      case 6:
      case 7:
        return Wait();
      case 8:
        return random_() % 4 != 0 || SynchroniseStream();
      case 9:
        return random_() % 8 != 0 || SynchroniseAll();
      default:
        return Use();
    }
  }

  // A new operation on the stream, and all that is before it.
  int Submit(int stream) {
    Set before = last_[stream];
    for (int other = 0; other < 3; ++other) {
      if ((stream == 0 && other != 0) || ((stream == 1 || stream == 2) && other == 0)) before |= last_[other];
    }
    const int number = operations_++;
    before.set(number);
    last_[stream] = before;
    return number;
  }

  bool Give() {
    const int begin = static_cast<int>(random_() % kSlots),
              end = begin + 1 + static_cast<int>(random_() % (kSlots - begin));
    for (const ModelBlock& b : blocks_) {
      if (b.live && b.begin < end && begin < b.end) return true;
    }
    blocks_.push_back({begin, end, {}});
    const uint64_t reports = simgpu::ReportCount();
    checker_.Given(kBase + begin * kSlotBytes, (end - begin) * kSlotBytes, simgpu::Teller::kOutside);
    return simgpu::ReportCount() == reports;
  }

  ModelBlock* AnyLive() {
    std::vector<ModelBlock*> live;
    for (ModelBlock& b : blocks_) {
      if (b.live) live.push_back(&b);
    }
    return live.empty() ? nullptr : live[random_() % live.size()];
  }

  bool Return() {
    ModelBlock* block = AnyLive();
    if (block == nullptr) return true;
    const uint64_t reports = simgpu::ReportCount(), address = kBase + block->begin * kSlotBytes;
    checker_.Returned(address, simgpu::Teller::kOutside);
    block->live = random_() % 4 == 0;  // refused
    if (block->live) checker_.Kept(address);
    return simgpu::ReportCount() == reports;
  }

  bool Use() {
    ModelBlock* block = AnyLive();
    if (block == nullptr) return true;
    const int stream = static_cast<int>(random_() % kStreams);
    const int number = Submit(stream);
    const Set before = last_[stream] | host_;
    bool wrong = false;
    for (const ModelBlock& old : blocks_) {
      if (&old == block) break;
      if (old.begin < block->end && block->begin < old.end && (old.users & ~before).any()) wrong = true;
    }
    block->users.set(number);
    const uint64_t reports = simgpu::ReportCount();
    checker_.UsePointer(order_.Submit(stream), kBase + block->begin * kSlotBytes + 8, true, "a use");
    const bool expected = wrong && !block->reported;
    block->reported = block->reported || wrong;
    return (simgpu::ReportCount() > reports) == expected;
  }

  bool Record() {
    const int stream = static_cast<int>(random_() % kStreams);
    Submit(stream);
    order_.Submit(stream);
    events_.push_back({last_[stream], order_.At(stream)});
    return true;
  }

  bool Wait() {
    if (events_.empty()) return true;
    const auto& [before, clock] = events_[events_.size() - 1 - random_() % std::min<size_t>(events_.size(), 3)];
    const int stream = static_cast<int>(random_() % kStreams);
    Submit(stream);
    last_[stream] |= before;
    order_.Wait(stream, clock);
    return true;
  }

  bool SynchroniseStream() {
    const int stream = static_cast<int>(random_() % kStreams);
    host_ |= last_[stream];
    order_.HostSawStream(stream);
    return true;
  }

  bool SynchroniseAll() {
    for (const Set& set : last_) host_ |= set;
    order_.HostSawGroup(1);
    return true;
  }

  std::mt19937 random_;
  simgpu::Order order_;
  Arena arena_;
  simgpu::Checker checker_;
  int operations_ = 0;
  std::array<Set, kStreams> last_;
  Set host_;
  std::vector<ModelBlock> blocks_;
  std::vector<std::pair<Set, simgpu::Clock>> events_;
};

TEST(CheckerModel, RandomPrograms) {
  const char* given = getenv("HOTPACK_TEST_SEED");
  const uint32_t first = given != nullptr ? static_cast<uint32_t>(strtoul(given, nullptr, 10)) : std::random_device()();
  const int programs = given != nullptr ? 1 : 20000;
  for (int i = 0; i < programs; ++i) {
    ASSERT_TRUE(Model(first + i).Run(200)) << "HOTPACK_TEST_SEED=" << first + i;
  }
  if (given == nullptr) {
    EXPECT_GT(simgpu::ReportCount(), 1000u);
  }
  printf("seeds from %u, %llu reports, all as the model says\n", first,
         static_cast<unsigned long long>(simgpu::ReportCount()));
}

}  // namespace
}  // namespace simgpu_test
