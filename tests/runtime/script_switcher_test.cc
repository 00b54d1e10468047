#include "runtime/engine/script_switcher.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "fake_device_memory.h"
#include "runtime/base/node_pool.h"
#include "script_helper.h"

namespace hotpack {
namespace {

using Activation = ScriptSwitcher::Activation;
using Loss = ScriptSwitcher::Loss;

// Blocks of the given sizes, each released before the next one comes.
std::shared_ptr<const Script> Sizes(const std::vector<uint32_t>& units) {
  std::vector<TestBlock> blocks;
  for (uint32_t u : units) blocks.push_back({u, 1, 0});
  return ScriptOf(blocks);
}

class ScriptSwitcherTest : public testing::Test {
 protected:
  ScriptSwitcherTest() {
    AdaptiveMutex mutex;
    EngineLock lock(mutex);
    EXPECT_EQ(pages_.Open(lock), MemoryStatus::kOk);
  }
  // Each block is released before the next one comes; none is served by script.
  void Request(uint32_t units) {
    if (const uint64_t count = history_.Count(); count > 0) history_.Released(count - 1);
    history_.Append(units);
  }
  void Requests(const std::vector<uint32_t>& sizes) {
    for (uint32_t units : sizes) Request(units);
  }
  Loss Lose(uint32_t units) {
    Request(units);
    Follower& follower = scripts_.follower();
    if (follower.active()) follower.Next(units, history_.Count() - 1, history_);
    return scripts_.NoteLoss();
  }

  FakeDeviceMemory device_{64 << 20, 64 << 10};
  std::atomic<bool> abandoned_{false};
  NodePool nodes_;
  History history_{1 << 14};
  DynamicBlocks blocks_{&nodes_};
  EngineStats stats_{nullptr};
  FastPath fast_;
  ScriptSwitcher scripts_{&history_, &pages_, &blocks_, &stats_, &fast_, nullptr};
  PageManager pages_{&device_, &abandoned_, &scripts_.follower(), &blocks_};
};

TEST_F(ScriptSwitcherTest, APendingScriptWaitsForItsIteration) {
  const auto script = Sizes({10, 20, 30, 40});
  scripts_.SetPending(script, 0);
  Requests({20, 30, 40});  // only three of its requests yet: that may be by chance, but it is all there is
  Requests({10, 20, 30});
  EXPECT_EQ(scripts_.TryActivate(40), Activation::kWaits);
  Request(40);
  EXPECT_EQ(scripts_.TryActivate(11), Activation::kWaits);
  EXPECT_FALSE(scripts_.Follows());
  EXPECT_EQ(scripts_.TryActivate(10), Activation::kActivated);
  EXPECT_TRUE(scripts_.Follows());
  EXPECT_EQ(scripts_.current(), script);
  EXPECT_EQ(scripts_.pending(), nullptr);
  EXPECT_EQ(scripts_.follower().cursor(), 0u);
}

TEST_F(ScriptSwitcherTest, APendingScriptClosesTheShortWay) {
  fast_.Set(true, true);
  scripts_.SetPending(Sizes({10, 20}), 0);
  EXPECT_FALSE(fast_.requests());
  EXPECT_TRUE(fast_.releases());
}

// Lost for longer than an iteration, it gives its zone back and waits.
TEST_F(ScriptSwitcherTest, ALostScriptIsParked) {
  scripts_.SetPending(Sizes({10, 20, 30, 40}), 0);
  Requests({10, 20, 30, 40});
  ASSERT_EQ(scripts_.TryActivate(10), Activation::kActivated);
  fast_.Set(true, true);
  int lost = 0, requests = 0;
  Loss loss = Loss::kNotLost;
  while (loss != Loss::kParked && requests < 2000) {
    loss = Lose(1000 + requests++);
    lost += loss == Loss::kJustLost;
  }
  EXPECT_EQ(loss, Loss::kParked);
  EXPECT_EQ(lost, 1);
  EXPECT_GT(requests, 256);
  EXPECT_TRUE(scripts_.parked());
  EXPECT_FALSE(scripts_.follower().active());
  EXPECT_FALSE(fast_.releases());
  EXPECT_EQ(pages_.zone().bytes, 0u);
  Requests({10, 20, 30, 40});
  EXPECT_EQ(scripts_.TryActivate(10), Activation::kActivated);
  EXPECT_FALSE(scripts_.parked());
}

// As if it had never been: an engine that only observes does not wait for a script (Engine::Trim, idle memory).
TEST_F(ScriptSwitcherTest, AForgottenScriptIsNotParked) {
  scripts_.SetPending(Sizes({10, 20}), 0);
  scripts_.Activate(0);
  ASSERT_TRUE(scripts_.Follows());
  scripts_.Forget();
  EXPECT_FALSE(scripts_.parked());
  EXPECT_EQ(scripts_.current(), nullptr);
  EXPECT_EQ(scripts_.variants().size(), 0u);
}

// Of a known script the last requests are enough, in the middle of an iteration too.
TEST_F(ScriptSwitcherTest, ChangesToAKnownScript) {
  std::vector<uint32_t> one, other;
  for (uint32_t i = 0; i < 64; ++i) {
    one.push_back(100 + i);
    other.push_back(300 + 3 * i);
  }
  const auto first = Sizes(one), second = Sizes(other);
  scripts_.SetPending(first, 0);
  scripts_.Activate(0);
  scripts_.SetPending(second, 0);
  scripts_.Activate(0);
  ASSERT_EQ(scripts_.current(), second);
  ASSERT_EQ(scripts_.variants().size(), 2u);
  int requests = 0;
  for (uint32_t units : one) {
    Lose(units);
    ++requests;
    scripts_.MaybeSwitch(history_.Count() - 1);
    if (scripts_.current() == first) break;
  }
  EXPECT_EQ(scripts_.current(), first);
  EXPECT_LT(requests, 64);
  EXPECT_EQ(scripts_.switches(), 1u);
  EXPECT_EQ(scripts_.follower().cursor(), static_cast<uint32_t>(requests - 1));  // that one is to be served now
}

// A block that is live when its script is left is an ordinary one from then on, where it lies.
TEST_F(ScriptSwitcherTest, LiveBlocksOutliveTheScript) {
  scripts_.SetPending(Sizes({10, 20}), 0);
  scripts_.Activate(0);
  Request(10);
  const Follower::Answer answer = scripts_.follower().Next(10, history_.Count() - 1, history_);
  ASSERT_EQ(answer.outcome, Follower::Outcome::kUnmapped);
  AdaptiveMutex mutex;
  {
    EngineLock lock(mutex);
    ASSERT_TRUE(pages_.MapEntry(lock, answer.entry, {}));
  }
  const DeviceAddress address = pages_.AddressOf(scripts_.follower().Offset(answer.entry));
  scripts_.Retire();
  const DynamicBlock* block = blocks_.Find(address);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->units, 10u);
  EXPECT_EQ(block->ordinal, history_.Count() - 1);
}

}  // namespace
}  // namespace hotpack
