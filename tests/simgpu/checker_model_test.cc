// The checker against a model that keeps the whole history: every operation with the set of operations before it, every
// block with its users. Random programs of allocations, uses, events of streams and of contexts, synchronisations, and
// streams that go and come; a failing one prints its seed.
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

constexpr int kMaxOperations = 256, kStreams = 7, kGroups = 2, kSlots = 12;
// The streams by number: 0 is the legacy default stream of the first context, 1 and 2 wait for it, 3 and 4 do not.
// 5 is the legacy default stream of the second context, 6 does not wait for it.
constexpr int GroupOf(int stream) { return stream < 5 ? 0 : 1; }
constexpr simgpu::StreamKind KindOf(int stream) {
  if (stream == 0 || stream == 5) return simgpu::StreamKind::kLegacy;
  return stream < 3 ? simgpu::StreamKind::kBlocking : simgpu::StreamKind::kNonBlocking;
}
constexpr uint64_t kBase = 1 << 20, kSlotBytes = 512;
using Set = std::bitset<kMaxOperations>;

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
    for (int s = 0; s < kStreams; ++s) index_[s] = order_.AddStream(GroupOf(s), KindOf(s));
  }

  // False: the checker and the model disagree.
  bool Run(int steps) {
    for (int i = 0; i < steps && operations_ < kMaxOperations - 1; ++i) {
      if (!Step()) return false;
    }
    return true;
  }

 private:
  bool Step() {
    switch (random_() % 20) {
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
        return random_() % 8 != 0 || SynchroniseGroup();
      case 10:
        return RecordGroup();
      case 11:
        return random_() % 2 != 0 || WaitGroup();
      case 12:
        return random_() % 2 != 0 || ReplaceStream();
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
    if (stream == 0) before |= gone_blocking_;
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
    checker_.UsePointer(order_.Submit(index_[stream]), kBase + block->begin * kSlotBytes + 8, true, "a use");
    const bool expected = wrong && !block->reported;
    block->reported = block->reported || wrong;
    return (simgpu::ReportCount() > reports) == expected;
  }

  bool Record() {
    const int stream = static_cast<int>(random_() % kStreams);
    Submit(stream);
    order_.Submit(index_[stream]);
    events_.push_back({last_[stream], order_.At(index_[stream])});
    return true;
  }

  const std::pair<Set, simgpu::Clock>& AnyEvent() {
    return events_[events_.size() - 1 - random_() % std::min<size_t>(events_.size(), 3)];
  }

  bool Wait() {
    if (events_.empty()) return true;
    const auto& [before, clock] = AnyEvent();
    const int stream = static_cast<int>(random_() % kStreams);
    Submit(stream);
    last_[stream] |= before;
    order_.Wait(index_[stream], clock);
    return true;
  }

  // The work of the group's streams, destroyed ones included.
  Set AllOf(int group) const {
    Set all = gone_[group];
    for (int s = 0; s < kStreams; ++s) {
      if (GroupOf(s) == group) all |= last_[s];
    }
    return all;
  }

  bool RecordGroup() {
    const int group = static_cast<int>(random_() % kGroups);
    events_.push_back({AllOf(group), order_.AtGroup(group)});
    return true;
  }

  bool WaitGroup() {
    if (events_.empty()) return true;
    const auto& [before, clock] = AnyEvent();
    const int group = static_cast<int>(random_() % kGroups);
    waits_[group] |= before;
    for (int s = 0; s < kStreams; ++s) {
      if (GroupOf(s) == group) last_[s] |= before;
    }
    order_.WaitGroup(group, clock);
    return true;
  }

  // A stream is destroyed, perhaps with work pending, and another one of its kind is made.
  bool ReplaceStream() {
    const int stream = static_cast<int>(random_() % kStreams), group = GroupOf(stream);
    if (KindOf(stream) == simgpu::StreamKind::kLegacy) return true;
    gone_[group] |= last_[stream];
    if (KindOf(stream) == simgpu::StreamKind::kBlocking) gone_blocking_ |= last_[stream];
    last_[stream] = waits_[group];
    order_.RemoveStream(index_[stream]);
    index_[stream] = order_.AddStream(group, KindOf(stream));
    return true;
  }

  bool SynchroniseStream() {
    const int stream = static_cast<int>(random_() % kStreams);
    host_ |= last_[stream];
    order_.HostSawStream(index_[stream]);
    return true;
  }

  bool SynchroniseGroup() {
    const int group = static_cast<int>(random_() % kGroups);
    host_ |= AllOf(group);
    order_.HostSawGroup(group);
    return true;
  }

  std::mt19937 random_;
  simgpu::Order order_;
  Arena arena_;
  simgpu::Checker checker_;
  int operations_ = 0;
  std::array<int, kStreams> index_;        // in order_
  std::array<Set, kStreams> last_;         // what comes before the stream's next operation
  std::array<Set, kGroups> gone_, waits_;  // what destroyed streams did; what streams that are made come after
  Set gone_blocking_;                      // of the first group: its legacy stream waits for them
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
