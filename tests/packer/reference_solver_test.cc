#include "reference_solver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "packer/bounds.h"
#include "packer/pack.h"
#include "packer/validator.h"
#include "random_instance.h"
#include "small_instance.h"
#include "tests/support/sanitized.h"

namespace hotpack::testing {
namespace {

using ::testing::IsEmpty;

// What is tested is the tests' own judge. A sanitizer, which only looks for its errors, finds them in a few instances.
#ifdef HOTPACK_SANITIZED
constexpr int kShare = 8;
#else
constexpr int kShare = 1;
#endif

// Every offset of every block, no thought spent. `placement` is filled up from `block` on.
Bytes LowestOfAll(const Instance& instance, Bytes best, size_t block, Placement* placement) {
  if (block == instance.blocks.size()) {
    placement->height = 0;
    for (size_t i = 0; i < block; ++i) {
      placement->height = std::max(placement->height, placement->offsets[i] + instance.blocks[i].size);
    }
    return placement->height < best && ReferenceFault(instance, *placement).empty() ? placement->height : best;
  }
  const Block& of = instance.blocks[block];
  for (Offset offset = 0; offset + of.size < best; offset += of.alignment) {
    placement->offsets[block] = offset;
    best = LowestOfAll(instance, best, block + 1, placement);
  }
  return best;
}

TEST(ReferenceSolverTest, AgreesWithTryingEveryOffset) {
  Random random(TestSeed());
  int compared = 0;
  int above_load = 0;
  for (int run = 0; run < 30'000 / kShare; ++run) {
    const Instance instance = SmallInstance(4, &random);
    const Placement placement = ReferenceOptimum(instance);
    ASSERT_THAT(ReferenceFault(instance, placement), IsEmpty()) << "run " << run;
    if (placement.height > 20) continue;
    Placement tried;
    tried.offsets.resize(instance.blocks.size());
    ASSERT_EQ(LowestOfAll(instance, placement.height + 1, 0, &tried), placement.height) << "run " << run;
    ++compared;
    above_load += placement.height > ReferenceLoad(instance) ? 1 : 0;
  }
  EXPECT_GT(compared, 5'000 / kShare);
  EXPECT_GT(above_load, 200 / kShare);
}

TEST(ReferenceSolverTest, DecidesACapacity) {
  Random random(TestSeed() + 1);
  for (int run = 0; run < 20'000 / kShare; ++run) {
    const Instance instance = SmallInstance(7, &random);
    const Bytes height = ReferenceOptimum(instance).height;
    const std::optional<Placement> within = ReferenceWithin(instance, height);
    ASSERT_TRUE(within.has_value()) << "run " << run;
    ASSERT_EQ(within->height, height) << "run " << run;
    ASSERT_THAT(ReferenceFault(instance, *within), IsEmpty()) << "run " << run;
    ASSERT_FALSE(ReferenceWithin(instance, height - 1).has_value()) << "run " << run;
  }
}

TEST(ReferenceSolverTest, LoadAgreesWithTheBounds) {
  Random random(TestSeed() + 2);
  for (int run = 0; run < 20'000 / kShare; ++run) {
    Instance instance = SmallInstance(12, &random);
    ASSERT_LE(ReferenceLoad(instance), LowerBound(instance)) << "run " << run;
    // Without alignment the packer knows no more than the judge.
    for (Block& block : instance.blocks) block.alignment = 1;
    ASSERT_EQ(ReferenceLoad(instance), LowerBound(instance)) << "run " << run;
  }
}

TEST(SmallInstanceTest, IsWellFormedAndOfEveryKind) {
  Random random(TestSeed() + 3);
  constexpr int kRuns = 20'000;
  int carried = 0, several = 0, aligned = 0, pinned = 0, pinned_above_load = 0, above_bound = 0;
  for (int run = 0; run < kRuns; ++run) {
    const Instance instance = SmallInstance(7, &random);
    ASSERT_EQ(CheckInstance(instance), PackStatus::kOk) << "run " << run;
    ASSERT_GE(instance.blocks.size(), 1u);
    ASSERT_LE(instance.blocks.size(), 7u);
    Clock first = std::numeric_limits<Clock>::max();
    Clock last = std::numeric_limits<Clock>::min();
    for (const Block& block : instance.blocks) {
      first = std::min(first, block.residency.front().begin);
      last = std::max(last, block.residency.back().end);
    }
    const auto any = [&](auto property) {
      return std::any_of(instance.blocks.begin(), instance.blocks.end(), property) ? 1 : 0;
    };
    carried += any([&](const Block& b) {
      return b.residency.size() > 1 && b.residency.front().begin == first && b.residency.back().end == last;
    });
    several += any([](const Block& b) { return b.residency.size() > 2; });
    aligned += any([](const Block& b) { return b.alignment > 1; });
    pinned += any([](const Block& b) { return b.pinned != kNotPinned; });
    pinned_above_load += ReferenceLoad(instance) > MaxLoad(instance) ? 1 : 0;
    above_bound += ReferenceOptimum(instance).height > ReferenceLoad(instance) ? 1 : 0;
  }
  for (int count : {carried, several, aligned, pinned}) EXPECT_GT(count, kRuns / 10);
  EXPECT_GT(pinned_above_load, kRuns / 20);
  EXPECT_GT(above_bound, kRuns / 20);
}

TEST(CutRectangleTest, KnowsAPlacement) {
  Random random(TestSeed() + 4);
  int perfect = 0;
  for (int run = 0; run < 5'000; ++run) {
    const KnownInstance known = CutRectangle(40, &random);
    ASSERT_EQ(CheckInstance(known.instance), PackStatus::kOk) << "run " << run;
    ASSERT_THAT(ReferenceFault(known.instance, known.placement), IsEmpty()) << "run " << run;
    perfect += ReferenceLoad(known.instance) == known.placement.height ? 1 : 0;
  }
  EXPECT_GT(perfect, 2'500);
}

}  // namespace
}  // namespace hotpack::testing
