#include "packer/validator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "random_instance.h"

namespace hotpack {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Block MakeBlock(Bytes size, absl::InlinedVector<Residency, 1> residency) {
  Block block;
  block.size = size;
  block.residency = std::move(residency);
  return block;
}

//  offset ▲
//       6 ├───────┐
//         │   1   ├───┐
//       4 ├───┬───┘ 2 │
//         │ 0 │   └───┤     block 2 begins when block 1 ends, and stands on nothing
//       0 └───┴───┴───┴─► clock
//         0   2   4   6
class ValidatorTest : public ::testing::Test {
 protected:
  ValidatorTest() {
    instance_.blocks = {MakeBlock(4, {{0, 2}}), MakeBlock(2, {{0, 4}}), MakeBlock(3, {{4, 6}})};
    placement_ = {{0, 4, 2}, 6};
  }
  Instance instance_;
  Placement placement_;
};

TEST_F(ValidatorTest, AcceptsBlocksThatTouchInTimeOrSpace) { EXPECT_THAT(Validate(instance_, placement_), IsEmpty()); }

TEST_F(ValidatorTest, AcceptsNothing) { EXPECT_THAT(Validate({}, {}), IsEmpty()); }

TEST_F(ValidatorTest, NamesTheTwoBlocksThatOverlap) {
  placement_.offsets[1] = 3;
  placement_.height = 5;
  EXPECT_EQ(Validate(instance_, placement_), "block 0 and block 1 overlap at clock 0: [0, 4) and [3, 5)");
}

TEST_F(ValidatorTest, FindsABlockWithinAnother) {
  instance_.blocks[0].size = 10;
  placement_.height = 10;
  EXPECT_THAT(Validate(instance_, placement_), HasSubstr("block 0 and block 1 overlap"));
}

TEST_F(ValidatorTest, FindsTwoBlocksAtTheSameOffset) {
  placement_.offsets[1] = 0;
  placement_.height = 5;
  EXPECT_THAT(Validate(instance_, placement_), HasSubstr("overlap at clock 0"));
}

TEST_F(ValidatorTest, FindsAnOverlapInALaterInterval) {
  instance_.blocks[0].residency.push_back({5, 6});
  EXPECT_THAT(Validate(instance_, placement_), HasSubstr("block 0 and block 2 overlap at clock 5"));
}

TEST_F(ValidatorTest, FindsAWrongHeight) {
  placement_.height = 7;
  EXPECT_THAT(Validate(instance_, placement_), HasSubstr("height is given as 7"));
  placement_.height = 5;
  EXPECT_THAT(Validate(instance_, placement_), HasSubstr("ends at 6"));
}

TEST_F(ValidatorTest, FindsAMissingOffset) {
  placement_.offsets.pop_back();
  EXPECT_EQ(Validate(instance_, placement_), "the placement has 2 offsets for 3 blocks");
}

TEST_F(ValidatorTest, FindsANegativeOffset) {
  placement_.offsets[2] = -1;
  EXPECT_THAT(Validate(instance_, placement_), HasSubstr("block 2 has the negative offset -1"));
}

TEST_F(ValidatorTest, FindsAMisalignedOffset) {
  instance_.blocks[2].alignment = 2;
  EXPECT_THAT(Validate(instance_, placement_), IsEmpty());
  instance_.blocks[2].alignment = 4;
  EXPECT_THAT(Validate(instance_, placement_), HasSubstr("block 2 has offset 2, not a multiple of 4"));
}

TEST_F(ValidatorTest, FindsABlockThatIsNotWhereItIsPinned) {
  instance_.blocks[2].pinned = 2;
  EXPECT_THAT(Validate(instance_, placement_), IsEmpty());
  instance_.blocks[2].pinned = 3;
  EXPECT_THAT(Validate(instance_, placement_), HasSubstr("block 2 has offset 2, but is pinned at 3"));
}

TEST_F(ValidatorTest, FindsMalformedBlocks) {
  instance_.blocks[1].size = 0;
  EXPECT_THAT(Validate(instance_, placement_), HasSubstr("block 1 has size 0"));
  instance_.blocks[1] = MakeBlock(2, {{0, 4}});
  instance_.blocks[1].residency.clear();
  EXPECT_THAT(Validate(instance_, placement_), HasSubstr("block 1 has no residency"));
  instance_.blocks[1] = MakeBlock(2, {{3, 3}});
  EXPECT_THAT(Validate(instance_, placement_), HasSubstr("empty residency"));
  instance_.blocks[1] = MakeBlock(2, {{2, 3}, {0, 1}});
  EXPECT_THAT(Validate(instance_, placement_), HasSubstr("out of order"));
  instance_.blocks[1] = MakeBlock(INT64_MAX, {{0, 4}});
  EXPECT_THAT(Validate(instance_, placement_), HasSubstr("beyond the largest offset"));
}

// Every pair compared, as one would write the definition down.
bool HasCollision(const Instance& instance, const Placement& placement) {
  for (size_t a = 0; a < instance.blocks.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (testing::ResidentTogether(instance.blocks[a], instance.blocks[b]) &&
          placement.offsets[a] < placement.offsets[b] + instance.blocks[b].size &&
          placement.offsets[b] < placement.offsets[a] + instance.blocks[a].size) {
        return true;
      }
    }
  }
  return false;
}

TEST(ValidatorPropertyTest, AgreesWithComparingAllPairs) {
  std::mt19937_64 random(testing::TestSeed());
  int valid = 0;
  constexpr int kRuns = 20'000;
  for (int run = 0; run < kRuns; ++run) {
    testing::InstanceShape shape;
    shape.blocks = 1 + static_cast<int>(random() % 8);
    shape.clocks = 12;
    shape.largest = 6;
    shape.carried = shape.gaps = 0.2;
    const Instance instance = testing::RandomInstance(shape, &random);
    Placement placement;
    for (const Block& block : instance.blocks) {
      placement.offsets.push_back(static_cast<Offset>(random() % 30));
      placement.height = std::max(placement.height, placement.offsets.back() + block.size);
    }
    const bool collides = HasCollision(instance, placement);
    ASSERT_EQ(!Validate(instance, placement).empty(), collides) << "run " << run;
    valid += collides ? 0 : 1;
  }
  EXPECT_GT(valid, kRuns / 20);
  EXPECT_LT(valid, kRuns - kRuns / 20);
}

}  // namespace
}  // namespace hotpack
