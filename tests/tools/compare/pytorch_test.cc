// PyTorch's allocator, simulated: sequences computed by hand from its rules. bench/torch/peers_agree compares it with
// PyTorch itself.
#include <vector>

#include "gtest/gtest.h"
#include "tests/tools/compare/policy_player.h"

namespace hotpack {
namespace {

using testing::kKiB;
using testing::kMiB;
using testing::PolicyPlayer;

TEST(PyTorchTest, SegmentsByTheSizeOfTheRequest) {
  struct {
    uint64_t bytes;
    double segment_mib;
  } cases[] = {{1, 2},
               {512, 2},
               {kMiB, 2},
               {kMiB + 1, 20},
               {10 * kMiB - 512, 20},
               {10 * kMiB - 511, 10},
               {10 * kMiB, 10},
               {10 * kMiB + 1, 12},
               {33 * kMiB, 34}};
  for (const auto& [bytes, segment_mib] : cases) {
    PolicyPlayer player(MakePyTorch);
    player.Ask(bytes);
    EXPECT_EQ(player.HeldMiB(), segment_mib) << bytes;
    EXPECT_EQ(player.device().calls(), 1u);
  }
}

TEST(PyTorchTest, SmallRequestsShareASegment) {
  PolicyPlayer player(MakePyTorch);
  const uint32_t a = player.Ask(1), b = player.Ask(513), c = player.Ask(kMiB);
  EXPECT_EQ(player.At(b) - player.At(a), 512u);
  EXPECT_EQ(player.At(c) - player.At(b), 1024u);
  EXPECT_EQ(player.HeldMiB(), 2);
  player.Ask(kMiB);  // 1 MiB - 1.5 KiB are left there
  EXPECT_EQ(player.HeldMiB(), 4);
}

TEST(PyTorchTest, TheRestOfALargeChunkStaysWithTheBlockUnlessItIsMoreThanOneMebibyte) {
  // 20 MiB ├─ 5 ─┼─ 5 ─┼── 10 ──┤   9 MiB leave 1 MiB: not more than one, so the chunk goes as a whole
  PolicyPlayer player(MakePyTorch);
  player.Ask(5 * kMiB);
  player.Ask(5 * kMiB);
  const uint32_t whole = player.Ask(9 * kMiB);
  EXPECT_EQ(player.HeldMiB(), 20);
  player.Ask(512 * kKiB + kMiB);  // would fit into 1 MiB... if it were there and large enough
  EXPECT_EQ(player.HeldMiB(), 40);
  player.Give(whole);
  player.Ask(10 * kMiB);  // a size that gets a segment of its own when nothing fits
  EXPECT_EQ(player.HeldMiB(), 40);

  // Nor does the rest join the block freed behind it: 20 MiB ├── 9 (and 1) ──┼─ 8 freed ─┼ 2 ┤
  PolicyPlayer behind(MakePyTorch);
  behind.Give(behind.Ask(9 * kMiB));
  const uint32_t first = behind.Ask(10 * kMiB), second = behind.Ask(8 * kMiB);
  behind.Give(first);
  EXPECT_EQ(behind.At(behind.Ask(9 * kMiB)), 0u);
  behind.Give(second);
  behind.Ask(11 * kMiB);
  EXPECT_EQ(behind.HeldMiB(), 32);

  PolicyPlayer cut(MakePyTorch);
  cut.Ask(10 * kMiB - 512 - 1024 * kKiB - 512);  // leaves more than 10 MiB + 1 MiB
  cut.Ask(10 * kMiB - 1024 * kKiB);              // leaves more than 1 MiB
  cut.Ask(kMiB + 512);
  EXPECT_EQ(cut.HeldMiB(), 20);
}

TEST(PyTorchTest, TheSmallestFreeChunkOfEqualOnesTheLowest) {
  PolicyPlayer player(MakePyTorch);
  const uint32_t a = player.Ask(30 * kMiB), b = player.Ask(12 * kMiB), c = player.Ask(14 * kMiB),
                 d = player.Ask(12 * kMiB);
  const uint64_t b_at = player.At(b), c_at = player.At(c);
  player.Give(a);
  player.Give(d);
  player.Give(b);
  player.Give(c);
  EXPECT_EQ(player.At(player.Ask(11 * kMiB)), b_at);
  EXPECT_EQ(player.At(player.Ask(13 * kMiB)), c_at);
  EXPECT_EQ(player.HeldMiB(), 68);
}

TEST(PyTorchTest, FreedNeighboursBecomeOneChunkButNotOverSegments) {
  PolicyPlayer player(MakePyTorch);
  const uint32_t a = player.Ask(6 * kMiB), b = player.Ask(6 * kMiB), c = player.Ask(8 * kMiB),
                 other = player.Ask(12 * kMiB);
  player.Give(a);
  player.Give(c);
  player.Give(b);
  player.Give(other);
  EXPECT_EQ(player.At(player.Ask(20 * kMiB)), 0u);
  EXPECT_EQ(player.HeldMiB(), 32);
  player.Ask(13 * kMiB);
  EXPECT_EQ(player.HeldMiB(), 46);
}

TEST(PyTorchTest, StreamsAndPoolsShareNothing) {
  PolicyPlayer player(MakePyTorch);
  player.Give(player.Ask(12 * kMiB, 1));
  player.Ask(12 * kMiB, 2);
  EXPECT_EQ(player.HeldMiB(), 24);
  player.Ask(12 * kMiB, 1);
  EXPECT_EQ(player.HeldMiB(), 24);
  player.Give(player.Ask(4 * kMiB, 3));
  player.Ask(100, 3);  // not from the 20 MiB
  EXPECT_EQ(player.HeldMiB(), 46);
}

TEST(PyTorchTest, WholeSegmentsAreGivenBackWhenTheDeviceIsFull) {
  PolicyPlayer player(MakePyTorch, 50 * kMiB);
  const uint32_t split = player.Ask(4 * kMiB);  // 20 MiB, of which 16 stay cached
  player.Give(player.Ask(12 * kMiB, 7));        // another stream's is given back too
  player.Give(player.Ask(100));
  EXPECT_EQ(player.HeldMiB(), 34);
  EXPECT_NE(player.Ask(30 * kMiB), PolicyPlayer::kFailed);
  EXPECT_EQ(player.HeldMiB(), 50);
  EXPECT_EQ(player.device().calls(), 4u + 2u + 1u);  // the one that failed counts
  EXPECT_EQ(player.Ask(17 * kMiB), PolicyPlayer::kFailed);
  player.Give(split);
  EXPECT_NE(player.Ask(17 * kMiB), PolicyPlayer::kFailed);
}

TEST(PyTorchExpandableTest, GranulesByPool) {
  PolicyPlayer player(MakePyTorchExpandable);
  player.Ask(1);
  EXPECT_EQ(player.HeldMiB(), 2);
  EXPECT_EQ(player.device().calls(), 3u);  // create, map, set access
  player.Ask(25 * kMiB);
  EXPECT_EQ(player.HeldMiB(), 42);
  EXPECT_EQ(player.device().calls(), 3u + 5u);
  player.Ask(15 * kMiB);  // all of the rest
  EXPECT_EQ(player.HeldMiB(), 42);
  player.Ask(2 * kMiB);
  EXPECT_EQ(player.HeldMiB(), 62);
}

TEST(PyTorchExpandableTest, AFreeChunkAtTheEndGrows) {
  //   ├─ 25 ─┼── 15 free ──┼┄┄┄   32 MiB: 17 are missing, one granule
  PolicyPlayer player(MakePyTorchExpandable);
  const uint32_t a = player.Ask(25 * kMiB);
  const uint32_t b = player.Ask(32 * kMiB);
  EXPECT_EQ(player.At(b) - player.At(a), 25 * kMiB);
  EXPECT_EQ(player.HeldMiB(), 60);
}

TEST(PyTorchExpandableTest, SmallRestsAreCutOff) {
  PolicyPlayer player(MakePyTorchExpandable);
  const uint32_t a = player.Ask(20 * kMiB - 1024 * kKiB);
  player.Give(a);
  player.Ask(2 * kMiB);
  const uint32_t c = player.Ask(18 * kMiB - 512);
  EXPECT_EQ(player.At(c) - player.At(a), 2 * kMiB);
  EXPECT_EQ(player.HeldMiB(), 20);
}

TEST(PyTorchExpandableTest, TheChunkAtTheEndIsSparedForWhatNeedsToGrow) {
  //   ├─ 12 free ─┼─ 8 live ─┼─ 10 free, then unmapped ┄┄►   9 MiB: 10 would be the smallest, but it can become more
  PolicyPlayer player(MakePyTorchExpandable);
  const uint32_t a = player.Ask(12 * kMiB);
  player.Ask(8 * kMiB);
  const uint32_t c = player.Ask(10 * kMiB);
  player.Give(player.Ask(10 * kMiB));
  const uint64_t a_at = player.At(a);
  player.Give(a);
  EXPECT_EQ(player.HeldMiB(), 40);
  EXPECT_EQ(player.At(player.Ask(9 * kMiB)), a_at);
  player.Ask(11 * kMiB);  // grows at the end: 12 - 9 is not enough
  EXPECT_EQ(player.HeldMiB(), 60);
  player.Give(c);
}

TEST(PyTorchExpandableTest, EmptyGranulesMoveWhenTheDeviceIsFull) {
  //  stream 0: ├──── 30 free ────┼─ 5 live ─┼ 5 free ┤   the first granule, 20 MiB, is empty
  PolicyPlayer player(MakePyTorchExpandable, 60 * kMiB);
  const uint32_t a = player.Ask(30 * kMiB);
  player.Ask(5 * kMiB);
  player.Give(a);
  EXPECT_EQ(player.HeldMiB(), 40);
  const uint32_t other = player.Ask(21 * kMiB, 1);  // two granules: one is there, one comes from stream 0
  ASSERT_NE(other, PolicyPlayer::kFailed);
  EXPECT_EQ(player.HeldMiB(), 60);
  EXPECT_EQ(player.Ask(30 * kMiB), PolicyPlayer::kFailed);
  player.Give(other);
  const uint32_t again = player.Ask(30 * kMiB);  // where it was: the hole is filled
  ASSERT_NE(again, PolicyPlayer::kFailed);
  EXPECT_EQ(player.At(again), 0u);
  EXPECT_EQ(player.HeldMiB(), 40);
}

TEST(PyTorchExpandableTest, ASegmentHasNineEighthsOfTheDevicesMemoryAsAddresses) {
  //  160 MiB in granules of 20, so 180 MiB of addresses:
  //  ├ hole ┼─ live ─┼ hole ┼── 4 x live ──┼─ 15 live ─┼───── 21 live ─────┼ 4 free ┤   and no addresses behind
  PolicyPlayer player(MakePyTorchExpandable, 160 * kMiB);
  std::vector<uint32_t> blocks;
  for (int i = 0; i < 7; ++i) blocks.push_back(player.Ask(20 * kMiB));
  player.Ask(15 * kMiB);
  player.Give(blocks[0]);
  player.Give(blocks[2]);
  ASSERT_NE(player.Ask(21 * kMiB), PolicyPlayer::kFailed);  // the holes' granules move behind the rest of 5 MiB
  EXPECT_EQ(player.HeldMiB(), 140);
  // One granule is left, and would do behind the rest of 4 MiB. A new segment needs two.
  EXPECT_EQ(player.Ask(24 * kMiB), PolicyPlayer::kFailed);
  EXPECT_NE(player.Ask(20 * kMiB), PolicyPlayer::kFailed);
  EXPECT_EQ(player.HeldMiB(), 160);
}

TEST(PyTorchExpandableTest, StreamsAndPoolsHaveSegmentsOfTheirOwn) {
  PolicyPlayer player(MakePyTorchExpandable);
  player.Give(player.Ask(2 * kMiB, 0));
  player.Ask(2 * kMiB, 1);
  EXPECT_EQ(player.HeldMiB(), 40);
  player.Ask(kMiB, 0);
  EXPECT_EQ(player.HeldMiB(), 42);
}

}  // namespace
}  // namespace hotpack
