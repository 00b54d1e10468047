// Single allocations, Chainer's pool and one arena, by hand.
#include "gtest/gtest.h"
#include "tests/tools/compare/policy_player.h"

namespace hotpack {
namespace {

using testing::PolicyPlayer;

constexpr uint64_t kU = 512;  // the unit of sizes

std::unique_ptr<PeerPolicy> MakeBestFit(ModelDevice* device) { return MakeOneArena(device, true); }
std::unique_ptr<PeerPolicy> MakeFirstFit(ModelDevice* device) { return MakeOneArena(device, false); }

TEST(SingleAllocationsTest, HoldsWhatIsLive) {
  PolicyPlayer player(MakeSingleAllocations, 5 * kU);
  const uint32_t a = player.Ask(1);
  player.Ask(kU + 1);
  EXPECT_EQ(player.device().held(), 3 * kU);
  EXPECT_EQ(player.Ask(2 * kU + 1), PolicyPlayer::kFailed);
  player.Give(a);
  EXPECT_NE(player.Ask(3 * kU), PolicyPlayer::kFailed);
  EXPECT_EQ(player.device().peak(), 5 * kU);
  EXPECT_EQ(player.device().calls(), 5u);
}

TEST(ChainerPoolTest, TakesExactlyWhatIsAskedForAndKeepsIt) {
  PolicyPlayer player(MakeChainerPool);
  player.Give(player.Ask(10 * kU - 3));
  EXPECT_EQ(player.device().held(), 10 * kU);
  player.Ask(11 * kU);  // the chunk is too small, and does not grow
  EXPECT_EQ(player.device().held(), 21 * kU);
}

TEST(ChainerPoolTest, TheSmallestChunkOfEqualOnesTheOneFreedLast) {
  PolicyPlayer player(MakeChainerPool);
  const uint32_t a = player.Ask(6 * kU), b = player.Ask(4 * kU), c = player.Ask(4 * kU);
  const uint64_t a_at = player.At(a), b_at = player.At(b), c_at = player.At(c);
  player.Give(c);
  player.Give(b);
  player.Give(a);
  EXPECT_EQ(player.At(player.Ask(3 * kU)), b_at);
  EXPECT_EQ(player.At(player.Ask(4 * kU)), c_at);
  EXPECT_EQ(player.At(player.Ask(1)), b_at + 3 * kU);  // the rest of the chunk of 4
  EXPECT_EQ(player.At(player.Ask(2 * kU)), a_at);
  EXPECT_EQ(player.device().held(), 14 * kU);
}

TEST(ChainerPoolTest, PartsOfAnAllocationAreJoinedAgain) {
  PolicyPlayer player(MakeChainerPool);
  player.Give(player.Ask(9 * kU));
  const uint32_t a = player.Ask(3 * kU), b = player.Ask(3 * kU), c = player.Ask(3 * kU);
  player.Give(a);
  player.Give(c);
  player.Give(b);
  EXPECT_EQ(player.At(player.Ask(9 * kU)), 0u);
  EXPECT_EQ(player.device().held(), 9 * kU);
}

TEST(ChainerPoolTest, UnusedAllocationsAreFreedWhenTheDeviceIsFull) {
  // Three allocations: one free as a whole, one free in part, one live. Only the first can be given back.
  PolicyPlayer player(MakeChainerPool, 30 * kU);
  const uint32_t whole = player.Ask(10 * kU), part = player.Ask(10 * kU);
  player.Ask(5 * kU);
  player.Give(part);
  player.Ask(4 * kU);
  player.Give(whole);
  EXPECT_EQ(player.Ask(16 * kU), PolicyPlayer::kFailed);
  EXPECT_EQ(player.device().held(), 15 * kU);
  EXPECT_NE(player.Ask(15 * kU), PolicyPlayer::kFailed);
}

TEST(ChainerPoolTest, StreamsShareNothing) {
  PolicyPlayer player(MakeChainerPool);
  player.Give(player.Ask(kU, 1));
  player.Ask(kU, 2);
  EXPECT_EQ(player.device().held(), 2 * kU);
}

//   offset  0    4  5      11 12          first fit puts a block of 3 to 0, best fit to 12: 3 are free there
//           ├ 4  ┤█├  6    ┤█├ 3 ┤█
void FourHoles(PolicyPlayer* player) {
  const uint32_t a = player->Ask(4 * kU);
  player->Ask(kU);
  const uint32_t b = player->Ask(6 * kU);
  player->Ask(kU);
  const uint32_t c = player->Ask(3 * kU);
  player->Ask(kU);
  player->Give(a);
  player->Give(b);
  player->Give(c);
}

TEST(OneArenaTest, BestFitAndFirstFit) {
  PolicyPlayer best(MakeBestFit), first(MakeFirstFit);
  FourHoles(&best);
  FourHoles(&first);
  EXPECT_EQ(best.At(best.Ask(3 * kU)), 12 * kU);
  EXPECT_EQ(first.At(first.Ask(3 * kU)), 0u);
  EXPECT_EQ(best.At(best.Ask(5 * kU)), 5 * kU);
  EXPECT_EQ(first.At(first.Ask(5 * kU)), 5 * kU);
  EXPECT_EQ(best.device().held(), 16 * kU);
  EXPECT_EQ(first.device().held(), 16 * kU);
}

TEST(OneArenaTest, GrowsByWhatTheFreeRangeAtItsEndLacks) {
  PolicyPlayer player(MakeBestFit, 9 * kU);
  player.Ask(2 * kU);
  player.Give(player.Ask(3 * kU));
  EXPECT_EQ(player.At(player.Ask(7 * kU)), 2 * kU);
  EXPECT_EQ(player.device().held(), 9 * kU);
  EXPECT_EQ(player.Ask(1), PolicyPlayer::kFailed);
}

TEST(OneArenaTest, NeighboursAreOneRange) {
  PolicyPlayer player(MakeBestFit);
  const uint32_t a = player.Ask(2 * kU), b = player.Ask(2 * kU), c = player.Ask(2 * kU);
  player.Ask(kU);
  player.Give(a);
  player.Give(c);
  player.Give(b);
  EXPECT_EQ(player.At(player.Ask(6 * kU)), 0u);
  EXPECT_EQ(player.device().held(), 7 * kU);
}

}  // namespace
}  // namespace hotpack
