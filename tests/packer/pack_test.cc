#include "packer/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <thread>

#include "packer/bounds.h"
#include "packer/stop.h"
#include "packer/validator.h"
#include "random_instance.h"

namespace hotpack {
namespace {

using ::testing::IsEmpty;

constexpr Algorithm kAlgorithms[] = {Algorithm::kAuto, Algorithm::kBestFit, Algorithm::kFirstFit, Algorithm::kExact};

Block MakeBlock(Bytes size, absl::InlinedVector<Residency, 1> residency) {
  Block block;
  block.size = size;
  block.residency = std::move(residency);
  return block;
}

PackOptions Quick(Algorithm algorithm = Algorithm::kAuto) {
  PackOptions options;
  options.algorithm = algorithm;
  options.time_limit_ns = 3'000'000;
  return options;
}

TEST(PackTest, PacksNothing) {
  for (Algorithm algorithm : kAlgorithms) {
    const PackResult result = Pack({}, Quick(algorithm));
    EXPECT_EQ(result.status, PackStatus::kOk);
    EXPECT_EQ(result.placement.height, 0);
    EXPECT_EQ(result.lower_bound, 0);
    EXPECT_TRUE(result.proven_optimal);
  }
}

// Blocks of drawn sizes and lives, which no solver is done with in the time there is.
Instance HardInstance() {
  std::mt19937_64 random(7);
  Instance instance;
  for (int i = 0; i < 400; ++i) {
    // A draw a statement: compilers differ in the order of arguments.
    const Clock begin = static_cast<Clock>(random() % 300);
    const Clock end = begin + 1 + static_cast<Clock>(random() % 60);
    instance.blocks.push_back(MakeBlock(static_cast<Bytes>(1 + random() % 1000), {{begin, end}}));
  }
  return instance;
}

// However busy the machine is, and however many threads there may be.
TEST(PackTest, InLogicalTimeTheResultIsTheSameOnEveryMachine) {
  const Instance instance = HardInstance();
  const auto pack = [&instance](int threads) {
    WorkClock clock;
    PackOptions options;
    options.time_limit_ns = 5'000'000;
    options.clock = &clock;
    options.threads = threads;
    return Pack(instance, options);
  };
  const PackResult first = pack(1);
  ASSERT_EQ(first.status, PackStatus::kOk);
  EXPECT_FALSE(first.proven_optimal) << "the limit is not reached: nothing is tested";
  EXPECT_GE(first.nanoseconds, 5'000'000);
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (unsigned i = 0; i < 4 * std::max(1u, std::thread::hardware_concurrency()); ++i) {
    busy.emplace_back([&stop] {
      while (!stop.load(std::memory_order_relaxed)) std::this_thread::yield();
    });
  }
  for (const int threads : {1, 1, 3}) {
    const PackResult again = pack(threads);
    EXPECT_EQ(again.placement.offsets, first.placement.offsets);
    EXPECT_EQ(again.nanoseconds, first.nanoseconds);
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
}

TEST(PackTest, StopsAtTheLowerBound) {
  Instance instance;
  instance.blocks = {MakeBlock(4, {{0, 3}, {6, 10}}), MakeBlock(3, {{2, 7}}), MakeBlock(4, {{3, 6}})};
  PackOptions options;
  options.time_limit_ns = std::numeric_limits<int64_t>::max();  // would never end otherwise
  const PackResult result = Pack(instance, options);
  EXPECT_EQ(result.placement.height, 7);
  EXPECT_EQ(result.lower_bound, 7);
  EXPECT_TRUE(result.proven_optimal);
}

TEST(PackTest, StopsAtTheCapacity) {
  const Instance instance = testing::ManySizedInstance(300, 1);
  PackOptions options;
  options.time_limit_ns = std::numeric_limits<int64_t>::max();
  options.capacity = 2 * MaxLoad(instance);
  const PackResult result = Pack(instance, options);
  EXPECT_LE(result.placement.height, options.capacity);
  EXPECT_THAT(Validate(instance, result.placement), IsEmpty());
}

TEST(PackTest, SaysThatACapacityIsTooSmall) {
  const Instance instance = testing::ManySizedInstance(300, 1);
  PackOptions options;
  options.capacity = MaxLoad(instance) - 1;
  EXPECT_EQ(Pack(instance, options).status, PackStatus::kInfeasible);
}

TEST(PackTest, RefusesMalformedInstances) {
  const Block good = MakeBlock(4, {{0, 3}});
  const auto status = [&](auto change) {
    Instance instance;
    instance.blocks = {good, good};
    change(&instance.blocks[1]);
    const PackResult result = Pack(instance, Quick());
    EXPECT_TRUE(result.status == PackStatus::kOk || result.placement.offsets.empty());
    return result.status;
  };
  EXPECT_EQ(status([](Block*) {}), PackStatus::kOk);
  EXPECT_EQ(status([](Block* b) { b->size = 0; }), PackStatus::kBadInstance);
  EXPECT_EQ(status([](Block* b) { b->size = -1; }), PackStatus::kBadInstance);
  EXPECT_EQ(status([](Block* b) { b->alignment = 0; }), PackStatus::kBadInstance);
  EXPECT_EQ(status([](Block* b) { b->residency.clear(); }), PackStatus::kBadInstance);
  EXPECT_EQ(status([](Block* b) { b->residency = {{2, 2}}; }), PackStatus::kBadInstance);
  EXPECT_EQ(status([](Block* b) { b->residency = {{0, 2}, {1, 3}}; }), PackStatus::kBadInstance);
  EXPECT_EQ(status([](Block* b) { b->residency = {{4, 5}, {0, 1}}; }), PackStatus::kBadInstance);
  EXPECT_EQ(status([](Block* b) { b->pinned = -2; }), PackStatus::kBadInstance);
  EXPECT_EQ(status([](Block* b) { b->pinned = 3, b->alignment = 2; }), PackStatus::kBadInstance);
  EXPECT_EQ(status([](Block* b) { b->residency = {{0, 2}, {2, 3}}; }), PackStatus::kOk);
}

TEST(PackTest, RefusesPinnedBlocksThatCollide) {
  Instance instance;
  instance.blocks = {MakeBlock(4, {{0, 3}}), MakeBlock(4, {{2, 5}})};
  instance.blocks[0].pinned = 0;
  instance.blocks[1].pinned = 3;
  EXPECT_EQ(Pack(instance, Quick()).status, PackStatus::kBadInstance);
  instance.blocks[1].pinned = 4;
  EXPECT_EQ(Pack(instance, Quick()).status, PackStatus::kOk);
  instance.blocks[1].pinned = 3;
  instance.blocks[1].residency = {{3, 5}};
  EXPECT_EQ(Pack(instance, Quick()).status, PackStatus::kOk);
}

TEST(PackTest, RefusesWhatWouldOverflow) {
  constexpr Bytes kHuge = Bytes{1} << 61;
  Instance instance;
  instance.blocks = {MakeBlock(kHuge, {{0, 1}}), MakeBlock(kHuge, {{0, 1}})};
  EXPECT_EQ(Pack(instance, Quick()).status, PackStatus::kOk);
  instance.blocks.push_back(MakeBlock(1, {{0, 1}}));
  EXPECT_EQ(Pack(instance, Quick()).status, PackStatus::kOverflow);
  instance.blocks = {MakeBlock(1, {{0, 1}})};
  instance.blocks[0].pinned = std::numeric_limits<Offset>::max();
  EXPECT_EQ(Pack(instance, Quick()).status, PackStatus::kOverflow);
  instance.blocks = {MakeBlock(1, {{0, std::numeric_limits<Clock>::max()}})};
  EXPECT_EQ(Pack(instance, Quick()).status, PackStatus::kOverflow);
}

TEST(PackTest, KnowsAlgorithmsByName) {
  for (Algorithm algorithm : kAlgorithms) EXPECT_EQ(AlgorithmFromName(AlgorithmName(algorithm)), algorithm);
  EXPECT_EQ(AlgorithmFromName("best-fit"), Algorithm::kBestFit);
  EXPECT_EQ(AlgorithmFromName("bestfit"), std::nullopt);
}

TEST(PackTest, BeginsFromAGivenPlacement) {
  const Instance instance = testing::ManySizedInstance(300, 2);
  PackOptions options;
  options.time_limit_ns = 100'000'000;
  const PackResult good = Pack(instance, options);
  const std::atomic<bool> cancelled{true};
  options.cancel = &cancelled;
  const PackResult without = Pack(instance, options);
  ASSERT_LT(good.placement.height, without.placement.height);
  options.start = &good.placement;
  EXPECT_EQ(Pack(instance, options).placement.height, good.placement.height);
  // One that is no placement is not taken over.
  Placement bad = good.placement;
  std::fill(bad.offsets.begin(), bad.offsets.end(), 0);
  bad.height = 1;
  options.start = &bad;
  EXPECT_THAT(Validate(instance, Pack(instance, options).placement), IsEmpty());
}

TEST(PackTest, IsValidAtOnceWhenCancelledOrOutOfTime) {
  const Instance instance = testing::ManySizedInstance(2000, 3);
  const std::atomic<bool> cancelled{true};
  for (Algorithm algorithm : kAlgorithms) {
    PackOptions options = Quick(algorithm);
    options.time_limit_ns = 0;
    EXPECT_THAT(Validate(instance, Pack(instance, options).placement), IsEmpty());
    options.time_limit_ns = std::numeric_limits<int64_t>::max();
    options.cancel = &cancelled;
    EXPECT_THAT(Validate(instance, Pack(instance, options).placement), IsEmpty());
  }
}

TEST(PackTest, EndsWhenAnotherThreadCancels) {
  const Instance instance = testing::ManySizedInstance(3000, 4);
  for (int threads : {1, 3}) {
    std::atomic<bool> cancelled{false};
    PackOptions options;
    options.time_limit_ns = std::numeric_limits<int64_t>::max();  // without the flag the test would hang
    options.threads = threads;
    options.cancel = &cancelled;
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      cancelled = true;
    });
    const PackResult result = Pack(instance, options);
    canceller.join();
    EXPECT_TRUE(cancelled);
    EXPECT_THAT(Validate(instance, result.placement), IsEmpty());
  }
}

TEST(PackTest, KeepsTheTimeLimit) {
  const Instance instance = testing::ManySizedInstance(3000, 5);
  PackOptions options;
  options.time_limit_ns = 100'000'000;
  const PackResult result = Pack(instance, options);
  ASSERT_FALSE(result.proven_optimal);
  EXPECT_GE(result.nanoseconds, options.time_limit_ns);
  // The promise is 5 % + 5 ms; a busy machine may take the processor away for longer than that.
  EXPECT_LE(result.nanoseconds, 10 * options.time_limit_ns);
}

// Until the capacity is reached there is no time-out, so two runs must agree in every offset.
TEST(PackTest, IsDeterministicForASeed) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Instance instance = testing::ManySizedInstance(200, 10 + seed);
    PackOptions options;
    options.seed = seed;
    options.time_limit_ns = 50'000'000;
    options.capacity = Pack(instance, options).placement.height;
    options.time_limit_ns = std::numeric_limits<int64_t>::max();
    const PackResult one = Pack(instance, options);
    const PackResult two = Pack(instance, options);
    EXPECT_EQ(one.placement.offsets, two.placement.offsets);
    EXPECT_STREQ(one.algorithm, two.algorithm);
  }
}

TEST(PackTest, IsNotWorseThanItsParts) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Instance instance = testing::ManySizedInstance(300, 20 + seed);
    PackOptions options;
    options.time_limit_ns = 300'000'000;
    const Bytes height = Pack(instance, options).placement.height;
    for (Algorithm algorithm : {Algorithm::kBestFit, Algorithm::kFirstFit}) {
      options.algorithm = algorithm;
      EXPECT_LE(height, Pack(instance, options).placement.height);
    }
  }
}

TEST(PackPropertyTest, EveryPlacementIsValidAndNotBelowTheBound) {
  std::mt19937_64 random(testing::TestSeed());
  for (int run = 0; run < 600; ++run) {
    const Instance instance = testing::RandomInstance(testing::RandomShape(&random), &random);
    for (Algorithm algorithm : kAlgorithms) {
      PackOptions options = Quick(algorithm);
      options.threads = 1 + run % 2;
      options.seed = random();
      const PackResult result = Pack(instance, options);
      ASSERT_EQ(result.status, PackStatus::kOk) << "run " << run;
      ASSERT_THAT(Validate(instance, result.placement), IsEmpty())
          << "run " << run << ", " << AlgorithmName(algorithm) << ", " << result.algorithm;
      ASSERT_GE(result.placement.height, result.lower_bound) << "run " << run;
      ASSERT_GE(result.lower_bound, LowerBound(instance)) << "run " << run;
      ASSERT_EQ(result.proven_optimal, result.placement.height == result.lower_bound) << "run " << run;
    }
  }
}

// Some order of first-fit finds an optimum of a small instance, so trying all orders is exact.
Bytes SmallestHeight(const Instance& instance) {
  std::vector<size_t> order(instance.blocks.size());
  std::iota(order.begin(), order.end(), 0);
  Bytes best = std::numeric_limits<Bytes>::max();
  do {
    std::vector<Offset> offsets(order.size(), -1);
    Bytes height = 0;
    for (size_t block : order) {
      Offset offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t other = 0; other < order.size(); ++other) {
          const Offset top = offsets[other] + instance.blocks[other].size;
          if (offsets[other] >= 0 && testing::ResidentTogether(instance.blocks[block], instance.blocks[other]) &&
              offset < top && offsets[other] < offset + instance.blocks[block].size) {
            offset = top;
            moved = true;
          }
        }
      }
      offsets[block] = offset;
      height = std::max(height, offset + instance.blocks[block].size);
    }
    best = std::min(best, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(PackPropertyTest, FindsTheOptimumOfTinyInstances) {
  std::mt19937_64 random(testing::TestSeed() + 2);
  int optimal = 0;
  constexpr int kRuns = 150;
  for (int run = 0; run < kRuns; ++run) {
    testing::InstanceShape shape;
    shape.blocks = 1 + run % 6;
    shape.clocks = 10;
    shape.largest = 9;
    shape.carried = run % 2 == 0 ? 0.5 : 0;
    shape.gaps = run % 3 == 0 ? 0.5 : 0;
    const Instance instance = testing::RandomInstance(shape, &random);
    const Bytes best = SmallestHeight(instance);
    const PackResult result = Pack(instance, Quick());
    ASSERT_LE(result.lower_bound, best) << "run " << run;
    ASSERT_GE(result.placement.height, best) << "run " << run;
    optimal += result.placement.height == best ? 1 : 0;
  }
  EXPECT_EQ(optimal, kRuns);  // hundreds of tries with at most six blocks
}

TEST(BoundsTest, MaxLoadIsTheLargestSumAtOneClockValue) {
  Instance instance;
  instance.blocks = {MakeBlock(4, {{0, 3}, {6, 10}}), MakeBlock(3, {{2, 7}}), MakeBlock(5, {{3, 6}})};
  EXPECT_EQ(MaxLoad(instance), 8);
  instance.blocks[0].pinned = 20;
  EXPECT_EQ(MaxLoad(instance), 8);
  EXPECT_EQ(LowerBound(instance), 24);
}

}  // namespace
}  // namespace hotpack
