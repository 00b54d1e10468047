// SpillPolicy by itself: its calls to the device, their times, and its log lines.
#include "runtime/engine/spill_policy.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/managed_device_memory.h"

namespace hotpack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kMiB = 1 << 20;

std::vector<std::string>* lines = nullptr;
void Log(const char* line) { lines->emplace_back(line); }

class SpillPolicyTest : public testing::Test {
 protected:
  SpillPolicyTest() { lines = &lines_; }
  ManagedDeviceMemory memory_;
  AdaptiveMutex mutex_;
  std::vector<std::string> lines_;
};

TEST_F(SpillPolicyTest, WithoutALimitNothingIsAskedFor) {
  SpillPolicy policy(&memory_, 0, Log);
  EngineLock lock(mutex_);
  DeviceAddress address = 0;
  EXPECT_FALSE(policy.enabled());
  EXPECT_FALSE(policy.Allocate(
      lock, 512, [] { return true; }, &address));
  EXPECT_EQ(memory_.held_managed(), 0u);
  EXPECT_THAT(lines_, IsEmpty());
  EXPECT_TRUE(policy.AdmitsPlan(lock, 100 * kMiB, 10 * kMiB, 50 * kMiB)) << "followed as far as there are pages";
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("60 MiB too few; what there is no room for is out of memory")));
}

TEST_F(SpillPolicyTest, BlocksAreThereUntilThePlanIsInForce) {
  SpillPolicy policy(&memory_, 256 * kMiB, Log);
  EngineLock lock(mutex_);
  DeviceAddress first = 0, second = 0;
  ASSERT_TRUE(policy.Allocate(
      lock, 8 * kMiB, [] { return true; }, &first));
  ASSERT_TRUE(policy.Allocate(
      lock, 4 * kMiB, [] { return true; }, &second));
  EXPECT_TRUE(policy.Owns(first) && policy.Owns(second));
  EXPECT_EQ(policy.peak_bytes(), 12 * kMiB);
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("the device is full")));
  EXPECT_FALSE(policy.Allocate(
      lock, 512, [] { return false; }, &first))
      << "a plan is in force";
  policy.Free(second, 4 * kMiB);
  policy.EndUse(lock, 64 * kMiB);
  policy.EndUse(lock, 64 * kMiB);
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("the device is full"),
                                  HasSubstr("64 MiB held; managed memory is not used any more (8 MiB")));
  EXPECT_GT(memory_.held_managed(), 0u) << "a block stays";
  policy.Free(first, 8 * kMiB);
  policy.EndUse(lock, 64 * kMiB);
  EXPECT_EQ(memory_.held_managed(), 0u);
  EXPECT_EQ(memory_.faults(), 0);
  EXPECT_TRUE(lock.owns_lock());
}

// State that may have changed while the lock was released is read again.
TEST_F(SpillPolicyTest, WhetherItMayIsAskedBeforeEachTry) {
  SpillPolicy policy(&memory_, 256 * kMiB, Log);
  EngineLock lock(mutex_);
  DeviceAddress address = 0;
  int asked = 0;
  EXPECT_FALSE(policy.Allocate(
      lock, 8 * kMiB, [&] { return asked++ < 1; }, &address));
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(memory_.held_managed(), 0u) << "the plan came into force before it was this thread's turn";
  asked = 0;
  EXPECT_FALSE(policy.Allocate(
      lock, 8 * kMiB, [&] { return asked++ < 2; }, &address));
  EXPECT_EQ(asked, 3);
  EXPECT_GT(memory_.held_managed(), 0u) << "the segment was made before the plan came into force";
  policy.EndUse(lock, 0);
  EXPECT_GT(memory_.held_managed(), 0u) << "no block was ever there: nothing ends";
}

TEST_F(SpillPolicyTest, ARefusalIsOneLine) {
  memory_.Refuse();
  SpillPolicy policy(&memory_, 256 * kMiB, Log);
  EngineLock lock(mutex_);
  DeviceAddress address = 0;
  for (int i = 0; i < 3; ++i)
    EXPECT_FALSE(policy.Allocate(
        lock, 8 * kMiB, [] { return true; }, &address));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("the driver refused it")));
}

TEST_F(SpillPolicyTest, APlanThatDoesNotFitIsNamedOnceForEachAmount) {
  SpillPolicy policy(&memory_, 256 * kMiB, Log);
  EngineLock lock(mutex_);
  EXPECT_TRUE(policy.AdmitsPlan(lock, 40 * kMiB, 10 * kMiB, 50 * kMiB));
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(policy.AdmitsPlan(lock, 44 * kMiB, 10 * kMiB, 50 * kMiB));
  EXPECT_FALSE(policy.AdmitsPlan(lock, 45 * kMiB, 10 * kMiB, 50 * kMiB));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("4 MiB too few"), HasSubstr("5 MiB too few")));
  EXPECT_THAT(lines_[0], HasSubstr("stays in managed memory"));
}

}  // namespace
}  // namespace hotpack
