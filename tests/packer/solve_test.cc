#include "packer/solve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "packer/bounds.h"
#include "packer/pack.h"
#include "packer/random.h"
#include "packer/timeline.h"
#include "random_instance.h"
#include "reference_solver.h"
#include "small_instance.h"

namespace hotpack {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
constexpr Algorithm kComplete[] = {Algorithm::kAuto, Algorithm::kExact};

PackOptions Unlimited(Algorithm algorithm) {
  PackOptions options;
  options.algorithm = algorithm;
  options.time_limit_ns = kNoLimit;  // what does not end by itself hangs
  return options;
}

// testing::AboveItsLoad() `times` over, one after the other in time, all sizes times `scale`, on a floor.
Instance InARow(int times, Bytes scale, Bytes floor, Bytes alignment = 1) {
  Instance instance;
  for (int i = 0; i < times; ++i) {
    for (Block block : testing::AboveItsLoad().blocks) {
      block.size *= scale;
      block.alignment = alignment;
      for (Residency& residency : block.residency) residency = {residency.begin + 10 * i, residency.end + 10 * i};
      instance.blocks.push_back(block);
    }
  }
  if (floor > 0) instance.blocks.push_back({.size = floor, .residency = {{0, 10 * times - 2}}});
  return instance;
}

void Add(Bytes size, Clock begin, Clock end, Instance* instance) {
  instance->blocks.push_back({.size = size, .residency = {{begin, end}}});
}

void ExpectProven(const Instance& instance, const PackOptions& options, Bytes least) {
  const PackResult result = Pack(instance, options);
  EXPECT_EQ(result.status, PackStatus::kOk);
  EXPECT_EQ(result.placement.height, least);
  EXPECT_EQ(result.lower_bound, least);
  EXPECT_TRUE(result.proven_optimal);
  EXPECT_THAT(testing::ReferenceFault(instance, result.placement), IsEmpty());
}

TEST(SolveTest, PartsArePutTogetherOnTheFloor) {
  for (Algorithm algorithm : kComplete) {
    ExpectProven(InARow(3, 1, 0), Unlimited(algorithm), 11);
    ExpectProven(InARow(3, 1, 7), Unlimited(algorithm), 18);
    ExpectProven(InARow(2, 8, 16, 8), Unlimited(algorithm), 8 * 11 + 16);
  }
}

// Not on the floor, for what lies on it would be misaligned; so nothing falls apart, and it is on top.
TEST(SolveTest, AFloorThatWouldMisalignStaysIn) {
  for (Algorithm algorithm : kComplete) ExpectProven(InARow(1, 8, 3, 8), Unlimited(algorithm), 8 * 11 + 3);
}

// The load of the first part is lower than that of the second; its least height is not.
TEST(SolveTest, AProofForOnePartHoldsForAll) {
  Instance instance = InARow(1, 4, 0);  // load 40, least 44
  Add(42, 20, 25, &instance);
  for (Algorithm algorithm : kComplete) {
    ExpectProven(instance, Unlimited(algorithm), 44);
    PackOptions options = Unlimited(algorithm);
    options.capacity = 43;
    const PackResult below = Pack(instance, options);
    EXPECT_EQ(below.status, PackStatus::kInfeasible);
    EXPECT_EQ(below.lower_bound, 44);
    options.capacity = 44;
    EXPECT_EQ(Pack(instance, options).status, PackStatus::kOk);
    EXPECT_EQ(Pack(instance, options).placement.height, 44);
  }
}

// Only the highest part must be proved: this one's least height is 11, but 40 is as good.
TEST(SolveTest, LowPartsNeedNoProof) {
  Instance instance = InARow(1, 1, 0);
  Add(40, 20, 25, &instance);
  const Timeline timeline = MakeTimeline(instance);
  PackOptions options = Unlimited(Algorithm::kExact);
  const Solution solution =
      Solve(instance, timeline, options, {Stacked(timeline), "stacked"}, LowerBound(timeline), {}, kNoLimit);
  EXPECT_EQ(solution.incumbent.placement.height, 40);
  EXPECT_EQ(solution.lower, 40);
}

TEST(SolveTest, CapacitiesAreDecidedPartByPart) {
  const Instance instance = InARow(2, 1, 5);  // load 15, least 16
  for (Algorithm algorithm : kComplete) {
    for (Bytes capacity = 13; capacity <= 20; ++capacity) {
      PackOptions options = Unlimited(algorithm);
      options.capacity = capacity;
      const PackResult result = Pack(instance, options);
      ASSERT_EQ(result.status, capacity < 16 ? PackStatus::kInfeasible : PackStatus::kOk) << capacity;
      if (capacity < 16) {
        EXPECT_GT(result.lower_bound, capacity);
        EXPECT_FALSE(result.proven_optimal);
      } else {
        EXPECT_LE(result.placement.height, capacity);
        EXPECT_THAT(testing::ReferenceFault(instance, result.placement), IsEmpty());
      }
    }
  }
}

// Neither found nor refuted in no time: a placement, and no claim.
TEST(SolveTest, UndecidedIsAPlacementAboveTheCapacity) {
  const Instance instance = InARow(2, 1, 5);
  for (Algorithm algorithm : kComplete) {
    PackOptions options = Unlimited(algorithm);
    options.time_limit_ns = 0;
    options.capacity = 15;
    const PackResult result = Pack(instance, options);
    EXPECT_EQ(result.status, PackStatus::kOk);
    EXPECT_GT(result.placement.height, 15);
    EXPECT_EQ(result.lower_bound, 15);
    EXPECT_FALSE(result.proven_optimal);
    EXPECT_THAT(testing::ReferenceFault(instance, result.placement), IsEmpty());
  }
}

TEST(SolveTest, AllThreadsAgree) {
  for (Algorithm algorithm : kComplete) {
    for (int threads : {1, 2, 4}) {
      PackOptions options = Unlimited(algorithm);
      options.threads = threads;
      ExpectProven(InARow(1, 1, 0), options, 11);
      ExpectProven(InARow(3, 1, 7), options, 18);
      options.capacity = 17;
      EXPECT_EQ(Pack(InARow(3, 1, 7), options).status, PackStatus::kInfeasible);
    }
  }
}

TEST(SolveTest, IsDeterministicForASeed) {
  for (Algorithm algorithm : kComplete) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      PackOptions options = Unlimited(algorithm);
      options.seed = seed;
      const Instance instance = InARow(3, 1, 7);
      const PackResult one = Pack(instance, options);
      const PackResult two = Pack(instance, options);
      EXPECT_EQ(one.placement.offsets, two.placement.offsets);
      EXPECT_STREQ(one.algorithm, two.algorithm);
    }
  }
}

// Parts whose proofs are out of reach.
Instance HardParts(int parts) {
  Instance instance;
  for (int part = 0; part < parts; ++part) {
    for (Block block : testing::HardInstance(400, 1).blocks) {
      for (Residency& residency : block.residency) {
        residency = {residency.begin + 100'000 * part, residency.end + 100'000 * part};
      }
      instance.blocks.push_back(block);
    }
  }
  return instance;
}

TEST(SolveTest, CancellationEndsThePartsToo) {
  const Instance instance = HardParts(3);
  for (Algorithm algorithm : kComplete) {
    for (int threads : {1, 3}) {
      std::atomic<bool> cancelled{false};
      PackOptions options = Unlimited(algorithm);
      options.threads = threads;
      options.cancel = &cancelled;
      std::thread canceller([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        cancelled = true;
      });
      const PackResult result = Pack(instance, options);
      canceller.join();
      EXPECT_THAT(testing::ReferenceFault(instance, result.placement), IsEmpty());
      EXPECT_GE(result.nanoseconds, 20'000'000) << "ended before it was told to";
    }
  }
}

// Each part has had its turn by the end of the time, not only the first.
TEST(SolveTest, PartsShareTheTime) {
  const Instance instance = HardParts(4);
  PackOptions options = Unlimited(Algorithm::kAuto);
  options.time_limit_ns = 200'000'000;
  const PackResult result = Pack(instance, options);
  options.algorithm = Algorithm::kBestFit;
  EXPECT_LT(result.placement.height, Pack(instance, options).placement.height);
}

// A start that is as low as can be is kept, whatever the bound; the bound is proved nevertheless.
TEST(SolveTest, KeepsItsStart) {
  const Instance instance = InARow(1, 1, 0);
  const Timeline timeline = MakeTimeline(instance);
  const Placement start = testing::ReferenceOptimum(instance);
  const Solution solution =
      Solve(instance, timeline, Unlimited(Algorithm::kExact), {start, "start"}, LowerBound(timeline), {}, kNoLimit);
  EXPECT_STREQ(solution.incumbent.algorithm, "start");
  EXPECT_EQ(solution.incumbent.placement.offsets, start.offsets);
  EXPECT_EQ(solution.lower, 11);
}

TEST(SolveTest, StackedIsAboveThePins) {
  const Instance instance{{{.size = 3, .alignment = 4, .residency = {{0, 2}}},
                           {.size = 2, .pinned = 5, .residency = {{0, 2}}},
                           {.size = 1, .pinned = 0, .residency = {{1, 4}}},
                           {.size = 3, .alignment = 5, .residency = {{6, 9}}}}};
  const Timeline timeline = MakeTimeline(instance);
  const Placement placement = Stacked(timeline);
  EXPECT_THAT(placement.offsets, ElementsAre(8, 5, 0, 15));
  EXPECT_EQ(placement.height, 18);
  EXPECT_EQ(LowerBound(timeline), 7);
}

TEST(SolveTest, TheBoundIsTheLoadWherePinsAreLower) {
  EXPECT_EQ(
      LowerBound(MakeTimeline({{{.size = 3, .residency = {{0, 2}}}, {.size = 2, .pinned = 1, .residency = {{1, 2}}}}})),
      5);
}

// Parts side by side, made of the judge's small instances: the whole is as high as the highest of them.
TEST(SolvePropertyTest, InstancesSideBySideAreAsHighAsTheHighest) {
  Random random(testing::TestSeed() + 70);
  for (int run = 0; run < testing::Runs(400); ++run) {
    Instance instance;
    Bytes least = 0;
    for (Clock part = 0; part < 3; ++part) {
      const Instance small = testing::SmallInstance(6, &random);
      least = std::max(least, testing::ReferenceOptimum(small).height);
      Clock first = kNoLimit;
      for (const Block& block : small.blocks) first = std::min(first, block.residency.front().begin);
      for (Block block : small.blocks) {
        for (Residency& residency : block.residency) {
          residency = {residency.begin - first + 1000 * part, residency.end - first + 1000 * part};
        }
        instance.blocks.push_back(block);
      }
    }
    PackOptions options = Unlimited(run % 2 == 0 ? Algorithm::kAuto : Algorithm::kExact);
    options.threads = 1 + run % 3;
    options.seed = random.Next();
    ExpectProven(instance, options, least);
    options.capacity = least - 1;
    if (least > 1) {
      EXPECT_EQ(Pack(instance, options).status, PackStatus::kInfeasible);
    }
    ASSERT_FALSE(HasFailure()) << "run " << run;
  }
}

TEST(SolvePropertyTest, SmallInstancesAreSolved) {
  Random random(testing::TestSeed() + 71);
  for (int run = 0; run < testing::Runs(1500); ++run) {
    const Instance instance = testing::SmallInstance(7, &random);
    const Bytes least = testing::ReferenceOptimum(instance).height;
    PackOptions options = Unlimited(run % 2 == 0 ? Algorithm::kAuto : Algorithm::kExact);
    options.seed = random.Next();
    ExpectProven(instance, options, least);
    options.capacity = least + random.Below(3);
    const PackResult result = Pack(instance, options);
    EXPECT_EQ(result.status, PackStatus::kOk);
    EXPECT_LE(result.placement.height, options.capacity);
    ASSERT_FALSE(HasFailure()) << "run " << run;
  }
}

}  // namespace
}  // namespace hotpack
