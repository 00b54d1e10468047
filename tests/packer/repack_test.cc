// The runtime's requirements of the packer: alignment, live blocks that must stay, several intervals, a new packing
// that begins from the old one, and an end on request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "packer/pack.h"
#include "random_instance.h"
#include "reference_solver.h"
#include "small_instance.h"
#include "tests/support/sanitized.h"

namespace hotpack {
namespace {

using ::testing::IsEmpty;
using testing::ReferenceFault;

constexpr int64_t kMillisecond = 1'000'000;

#ifdef HOTPACK_SANITIZED
constexpr int64_t kSlowness = 10;
#else
constexpr int64_t kSlowness = 1;
#endif

constexpr Algorithm kAlgorithms[] = {Algorithm::kAuto, Algorithm::kBestFit, Algorithm::kFirstFit, Algorithm::kExact};
constexpr Algorithm kSearchers[] = {Algorithm::kAuto, Algorithm::kExact};  // on until they are stopped

// A block in two thirds is larger than it was by up to a half; of the others some are live: they must stay.
Instance Grown(const Instance& old, const Placement& placement, double pinned, Random* random) {
  Instance grown = old;
  for (size_t i = 0; i < grown.blocks.size(); ++i) {
    Block& block = grown.blocks[i];
    if (random->Unit() < 0.67) {
      block.size += random->Below(block.size / 2 + 1);
    } else if (random->Unit() < pinned) {
      block.pinned = placement.offsets[i];
    }
  }
  return grown;
}

Bytes TopOf(const Instance& instance, const std::vector<Offset>& offsets) {
  Bytes top = 0;
  for (size_t i = 0; i < offsets.size(); ++i) top = std::max(top, offsets[i] + instance.blocks[i].size);
  return top;
}

// Processor time that a thread has used: what others take of the machine does not count.
int64_t ProcessorNanoseconds(pthread_t thread) {
  clockid_t clock;
  timespec now;
  if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &now) != 0) std::abort();
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

// The median of five, so that one odd moment does not decide.
template <typename Measure>
int64_t MedianOfFive(Measure measure) {
  std::vector<int64_t> values;
  for (int i = 0; i < 5; ++i) values.push_back(measure());
  std::sort(values.begin(), values.end());
  return values[2];
}

TEST(RepackTest, KeepsDriverAlignmentAndOtherOnes) {
  Instance instance = testing::ManySizedInstance(400, 1);
  for (size_t i = 0; i < instance.blocks.size(); ++i) {
    instance.blocks[i].alignment = i % 3 == 0 ? 512 : i % 3 == 1 ? 2 << 20 : 48;  // the last is no power of two
  }
  for (Algorithm algorithm : kAlgorithms) {
    PackOptions options;
    options.algorithm = algorithm;
    options.time_limit_ns = 100 * kMillisecond;
    const PackResult result = Pack(instance, options);
    ASSERT_EQ(result.status, PackStatus::kOk);
    EXPECT_THAT(ReferenceFault(instance, result.placement), IsEmpty()) << AlgorithmName(algorithm);
  }
}

// Memory of a block with several intervals is free for others in between: the best placement makes use of it.
TEST(RepackTest, PutsBlocksBetweenTheIntervalsOfOthers) {
  Instance instance;
  instance.blocks.resize(3);
  instance.blocks[0] = {100, 1, kNotPinned, {{0, 2}, {4, 6}, {8, 10}}};
  instance.blocks[1] = {100, 1, kNotPinned, {{2, 4}}};
  instance.blocks[2] = {100, 1, kNotPinned, {{6, 8}}};
  for (Algorithm algorithm : kAlgorithms) {
    PackOptions options;
    options.algorithm = algorithm;
    EXPECT_EQ(Pack(instance, options).placement.height, 100) << AlgorithmName(algorithm);
  }
}

TEST(RepackTest, PinnedLiveBlocksStayWhenOthersHaveGrown) {
  const Instance old = testing::ManySizedInstance(300, 2);
  PackOptions options;
  options.time_limit_ns = 50 * kMillisecond;
  const Placement before = Pack(old, options).placement;
  Random random(testing::TestSeed());
  for (int run = 0; run < 5; ++run) {
    const Instance grown = Grown(old, before, 0.5, &random);
    for (Algorithm algorithm : kAlgorithms) {
      options.algorithm = algorithm;
      options.start = &before;  // its offsets collide by now
      const PackResult result = Pack(grown, options);
      ASSERT_EQ(result.status, PackStatus::kOk);
      ASSERT_THAT(ReferenceFault(grown, result.placement), IsEmpty()) << AlgorithmName(algorithm);
      for (size_t i = 0; i < grown.blocks.size(); ++i) {
        const Offset pin = grown.blocks[i].pinned;
        ASSERT_TRUE(pin == kNotPinned || (pin == before.offsets[i] && pin == result.placement.offsets[i]));
      }
    }
  }
}

// Blocks have grown, each within the room that the old placement has for it.
TEST(RepackTest, IsNeverWorseThanAStartThatIsStillValid) {
  const Instance roomy = testing::ManySizedInstance(300, 3);
  PackOptions options;
  options.time_limit_ns = 100 * kMillisecond;
  Placement start = Pack(roomy, options).placement;
  Instance instance = roomy;
  Random random(testing::TestSeed() + 1);
  for (Block& block : instance.blocks) block.size -= random.Below(block.size / 4 + 1);
  options.start = &start;
  for (int run = 0; run < 5; ++run) {
    for (size_t i = 0; i < instance.blocks.size(); ++i) {
      Block& block = instance.blocks[i];
      block.size += random.Below(roomy.blocks[i].size - block.size + 1);
    }
    start.height = TopOf(instance, start.offsets);
    ASSERT_THAT(ReferenceFault(instance, start), IsEmpty());
    for (Algorithm algorithm : kSearchers) {
      options.algorithm = algorithm;
      for (int64_t limit_ns : {int64_t{0}, 5 * kMillisecond}) {
        options.time_limit_ns = limit_ns;
        const PackResult result = Pack(instance, options);
        EXPECT_THAT(ReferenceFault(instance, result.placement), IsEmpty());
        EXPECT_LE(result.placement.height, start.height) << AlgorithmName(algorithm) << ", limit " << limit_ns;
      }
    }
  }
}

// Offsets out of all range are mended like any others; the sanitizers see that nothing is added up that does not fit.
TEST(RepackTest, AStartOutOfRangeIsMended) {
  const Instance instance = testing::ManySizedInstance(40, 7);
  PackOptions options;
  options.time_limit_ns = 5 * kMillisecond;
  for (const Offset offset : {std::numeric_limits<Offset>::max(), std::numeric_limits<Offset>::min(), Offset{-1}}) {
    const Placement start{std::vector<Offset>(instance.blocks.size(), offset), 0};
    options.start = &start;
    for (Algorithm algorithm : kSearchers) {
      options.algorithm = algorithm;
      const PackResult result = Pack(instance, options);
      EXPECT_EQ(result.status, PackStatus::kOk);
      EXPECT_THAT(ReferenceFault(instance, result.placement), IsEmpty()) << offset;
    }
  }
}

TEST(RepackTest, AStartThatIsTheOptimumIsKept) {
  Random random(testing::TestSeed() + 2);
  for (int run = 0; run < 300; ++run) {
    const Instance instance = testing::SmallInstance(7, &random);
    const Placement best = testing::ReferenceOptimum(instance);
    PackOptions options;
    options.start = &best;
    options.time_limit_ns = kMillisecond / 10;
    for (Algorithm algorithm : kSearchers) {
      options.algorithm = algorithm;
      EXPECT_EQ(Pack(instance, options).placement.height, best.height) << "run " << run;
    }
  }
}

// The exact search alone is for smaller instances.
int BlocksFor(Algorithm algorithm) { return algorithm == Algorithm::kExact ? 400 : 2'000; }

// From the flag to the return, in processor time of the thread that packs.
TEST(RepackTest, EndsWithinMillisecondsOfACancellation) {
  for (Algorithm algorithm : kSearchers) {
    const Instance instance = testing::ManySizedInstance(BlocksFor(algorithm), 4);
    const int64_t late = MedianOfFive([&] {
      std::atomic<bool> cancelled{false};
      std::atomic<int64_t> cancelled_at{0};
      PackOptions options;
      options.algorithm = algorithm;
      options.time_limit_ns = 2'000 * kMillisecond;
      options.cancel = &cancelled;
      std::thread canceller([&, packing = pthread_self()] {
        std::this_thread::sleep_for(std::chrono::milliseconds(40));
        cancelled_at = ProcessorNanoseconds(packing);
        cancelled = true;
      });
      const PackResult result = Pack(instance, options);
      const int64_t returned_at = ProcessorNanoseconds(pthread_self());
      canceller.join();
      EXPECT_FALSE(result.proven_optimal);  // then nothing was cancelled
      EXPECT_THAT(ReferenceFault(instance, result.placement), IsEmpty());
      EXPECT_GT(cancelled_at, 0);
      return returned_at - cancelled_at;
    });
    EXPECT_GE(late, 0) << AlgorithmName(algorithm);
    EXPECT_LE(late, 5 * kMillisecond * kSlowness) << AlgorithmName(algorithm);
  }
}

// Packing by one thread does all its own work, so its processor time must be within the limit. The wall clock of a busy
// machine is not checked.
TEST(RepackTest, KeepsTheTimeLimit) {
  for (Algorithm algorithm : kSearchers) {
    const Instance instance = testing::ManySizedInstance(BlocksFor(algorithm), 5);
    for (int64_t limit_ns : {10 * kMillisecond, 100 * kMillisecond}) {
      const int64_t used = MedianOfFive([&] {
        PackOptions options;
        options.algorithm = algorithm;
        options.time_limit_ns = limit_ns;
        const int64_t begin = ProcessorNanoseconds(pthread_self());
        const PackResult result = Pack(instance, options);
        EXPECT_GE(result.nanoseconds, limit_ns) << AlgorithmName(algorithm);
        return ProcessorNanoseconds(pthread_self()) - begin;
      });
      EXPECT_LE(used, limit_ns + limit_ns / 20 + 5 * kMillisecond * kSlowness) << AlgorithmName(algorithm);
    }
  }
}

TEST(RepackTest, OneThreadAndOneSeedGiveOnePlacement) {
  Random random(testing::TestSeed() + 3);
  for (int run = 0; run < 20; ++run) {
    const Instance instance =
        run % 2 == 0 ? testing::ManySizedInstance(100, 100 + run) : testing::CutRectangle(40, &random).instance;
    for (Algorithm algorithm : kAlgorithms) {
      PackOptions options;
      options.algorithm = algorithm;
      options.seed = random.Next();
      // A height that can be reached without running out of time, so that only the seed decides.
      options.time_limit_ns = 20 * kMillisecond;
      options.capacity = Pack(instance, options).placement.height;
      options.time_limit_ns = 60'000 * kMillisecond;
      const PackResult one = Pack(instance, options);
      const PackResult two = Pack(instance, options);
      EXPECT_EQ(one.placement.offsets, two.placement.offsets) << "run " << run << ", " << AlgorithmName(algorithm);
      EXPECT_EQ(one.lower_bound, two.lower_bound);
      EXPECT_STREQ(one.algorithm, two.algorithm);
    }
  }
}

}  // namespace
}  // namespace hotpack
