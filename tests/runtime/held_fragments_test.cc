// Fragments: the memory that blocks which stay leave free in their chunks.
#include "runtime/engine/held_fragments.h"

#include <gtest/gtest.h>

#include "tests/runtime/fake_device_memory.h"

namespace hotpack {
namespace {

constexpr uint64_t kChunk = 64 << 10;

// Three chunks with a block in the middle of each; the rest of them is free.
class HeldFragmentsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(arena_.Open(8), MemoryStatus::kOk);
    PageWork work;
    ASSERT_TRUE(arena_.BeginGrowth(3 * kChunk, UINT64_MAX, UINT64_MAX, &work));
    arena_.Execute(&work);
    ASSERT_TRUE(arena_.Finish(&work));
    begin_ = work.block.begin;
    for (uint64_t k = 0; k < 3; ++k) kept_.push_back({begin_ + k * kChunk + kHalf - 512, 1024});
    DeviceAddress from = begin_;
    for (const AddressRange& block : kept_) {
      arena_.Free(from, block.begin - from);
      from = block.begin + block.bytes;
    }
    arena_.Free(from, begin_ + 3 * kChunk - from);
    free_ = arena_.free_mapped();
  }
  void TearDown() override { EXPECT_TRUE(arena_.Consistent()); }

  static Fragment At(DeviceAddress address, uint64_t bytes) {
    return {0, static_cast<uint32_t>(bytes / kBlockUnit), address};
  }
  // The free memory between the blocks, not in order.
  std::vector<Fragment> Between() const {
    return {At(kept_[1].begin + 1024, kChunk - 1024), At(kept_[0].begin + 1024, kChunk - 1024)};
  }

  static constexpr uint64_t kHalf = kChunk / 2;
  FakeDeviceMemory device_{256 * kChunk, kChunk};
  Arena arena_{&device_};
  HeldFragments held_{&arena_};
  DeviceAddress begin_ = 0;
  std::vector<AddressRange> kept_;
  uint64_t free_ = 0;
};

TEST_F(HeldFragmentsTest, WhatIsTakenIsNotFreeUntilItIsGivenBack) {
  ASSERT_TRUE(held_.HavePages(Between()));
  EXPECT_FALSE(held_.Include(Between()));
  held_.Take(Between());
  EXPECT_TRUE(held_.Include(Between()));
  EXPECT_EQ(arena_.free_mapped(), free_ - 2 * (kChunk - 1024));
  ASSERT_EQ(held_.ranges().size(), 2u);
  EXPECT_LT(held_.ranges()[0].begin, held_.ranges()[1].begin);
  held_.Free({});
  EXPECT_EQ(arena_.free_mapped(), free_);
  EXPECT_TRUE(held_.ranges().empty());
}

TEST_F(HeldFragmentsTest, PartsInUseStay) {
  held_.Take(Between());
  const AddressRange first = held_.ranges()[0], second = held_.ranges()[1];
  held_.Free({{first.begin, 512}, {first.begin + 2048, 1024}, {second.begin + second.bytes - 512, 512}});
  EXPECT_EQ(arena_.free_mapped(), free_ - 2048);
}

TEST_F(HeldFragmentsTest, ContainsRangesThatLieInOneOfThem) {
  held_.Take(Between());
  const AddressRange first = held_.ranges()[0];
  EXPECT_TRUE(held_.Contain(first));
  EXPECT_TRUE(held_.Contain({first.begin + 512, 512}));
  EXPECT_FALSE(held_.Contain({first.begin + 512, first.bytes})) << "it ends in the block behind";
  EXPECT_FALSE(held_.Contain({first.begin - 512, 1024}));
  EXPECT_FALSE(held_.Contain({begin_, 512}));
}

TEST_F(HeldFragmentsTest, FreesTheRestOfABlockThatLayAcrossTheirEnds) {
  held_.Take(Between());
  const AddressRange first = held_.ranges()[0], second = held_.ranges()[1];
  const uint64_t before = arena_.free_mapped();
  held_.FreeOutside({first.begin + 512, second.begin + 512 - first.begin - 512});
  EXPECT_EQ(arena_.free_mapped(), before + second.begin - first.begin - first.bytes);
}

TEST_F(HeldFragmentsTest, WithoutPagesThereIsNone) {
  EXPECT_FALSE(held_.HavePages({At(begin_ + 3 * kChunk, 512)}));
  EXPECT_TRUE(held_.HavePages({}));
}

}  // namespace
}  // namespace hotpack
