// The words about PyTorch's fragmentation below the table of `hotpack compare`.
#include "tools/compare/fragmentation_text.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hotpack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMiB = 1 << 20;

PeerResult Row(const char* name, uint64_t held, uint64_t smallest) {
  PeerResult row;
  row.name = name;
  row.reserved_peak = held;
  row.smallest.bytes = smallest;
  return row;
}

// 202.4 MiB are live. PyTorch holds 258, expandable segments 222, hotpack 206.
Comparison Perceptron() {
  Comparison comparison;
  comparison.live_peak = 2024 * kMiB / 10;
  comparison.hotpack = Row("hotpack", 206 * kMiB, 206 * kMiB);
  comparison.peers = {Row("pytorch", 258 * kMiB, 226 * kMiB), Row("pytorch-expandable", 222 * kMiB, 222 * kMiB)};
  return comparison;
}

TEST(FragmentationTextTest, HowMuchIsGivenBack) {
  EXPECT_EQ(FragmentationText(Perceptron()),
            "of 258.0 MiB that PyTorch's caching allocator holds, 202.4 are live: 55.6 are fragmentation; "
            "expandable segments give back 36.0, hotpack gives back 52.0");
}

TEST(FragmentationTextTest, WhoHoldsMore) {
  Comparison comparison = Perceptron();
  comparison.hotpack.reserved_peak = 260 * kMiB;
  EXPECT_THAT(FragmentationText(comparison), HasSubstr("expandable segments give back 36.0, hotpack holds 2.0 more"));
  comparison.peers[1].reserved_peak = 259 * kMiB;
  EXPECT_THAT(FragmentationText(comparison), HasSubstr("expandable segments hold 1.0 more, "));
}

// Both measures have to say so: hotpack gives memory back where the device is smaller.
TEST(FragmentationTextTest, WhereExpandableSegmentsAreEnough) {
  constexpr char kEnough[] = "expandable_segments:True is enough";
  Comparison comparison = Perceptron();
  comparison.hotpack.reserved_peak = 222 * kMiB;
  EXPECT_THAT(FragmentationText(comparison), Not(HasSubstr(kEnough))) << "on a smaller device hotpack fits";
  comparison.hotpack.smallest.bytes = 222 * kMiB;
  EXPECT_THAT(FragmentationText(comparison), HasSubstr(std::string("\nexpandable segments hold no more")));
  EXPECT_THAT(FragmentationText(comparison), HasSubstr(kEnough));
  comparison.hotpack.reserved_peak = 220 * kMiB;
  EXPECT_THAT(FragmentationText(comparison), Not(HasSubstr(kEnough)));
}

TEST(FragmentationTextTest, OnlyWithTheRowsItNeeds) {
  Comparison comparison = Perceptron();
  comparison.peers.pop_back();
  EXPECT_THAT(FragmentationText(comparison), HasSubstr("fragmentation; hotpack gives back 52.0"));
  comparison.hotpack.out_of_memory = true;
  EXPECT_EQ(FragmentationText(comparison), "");
  comparison = Perceptron();
  comparison.peers[1].out_of_memory = true;
  EXPECT_THAT(FragmentationText(comparison), Not(HasSubstr("expandable")));
  comparison.peers[0].out_of_memory = true;
  EXPECT_EQ(FragmentationText(comparison), "");
  EXPECT_EQ(FragmentationText({}), "");
}

}  // namespace
}  // namespace hotpack
