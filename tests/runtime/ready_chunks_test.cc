// The chunks of a zone that have their pages, against a list of them.
#include "runtime/engine/ready_chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace hotpack {
namespace {

constexpr DeviceAddress kBegin = uint64_t{7} << 21;
constexpr uint64_t kChunk = uint64_t{2} << 20;

TEST(ReadyChunksTest, NoneIsAtFirst) {
  ReadyChunks ready;
  ready.Open({kBegin, 3 * kChunk}, kChunk);
  EXPECT_FALSE(ready.Have(kBegin, kBegin + 512));
  ready.Set({kBegin, 3 * kChunk}, true);
  EXPECT_TRUE(ready.Have(kBegin, kBegin + 3 * kChunk));
  ready.Open({kBegin, 3 * kChunk}, kChunk);
  EXPECT_FALSE(ready.Have(kBegin, kBegin + 512)) << "another zone";
}

TEST(ReadyChunksTest, APartOfAChunkIsItsChunk) {
  ReadyChunks ready;
  ready.Open({kBegin, 200 * kChunk}, kChunk);
  ready.Set({kBegin + 63 * kChunk + 512, kChunk}, true);  // touches two
  EXPECT_TRUE(ready.Have(kBegin + 63 * kChunk, kBegin + 65 * kChunk));
  EXPECT_FALSE(ready.Have(kBegin + 63 * kChunk, kBegin + 65 * kChunk + 1));
  EXPECT_FALSE(ready.Have(kBegin + 63 * kChunk - 1, kBegin + 65 * kChunk));
}

TEST(ReadyChunksTest, DrawnRangesAgreeWithAList) {
  constexpr uint64_t kChunks = 300;
  std::mt19937_64 random(1);
  ReadyChunks ready;
  ready.Open({kBegin, kChunks * kChunk}, kChunk);
  std::vector<bool> model(kChunks, false);
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t first = random() % kChunks, last = std::min(kChunks - 1, first + random() % (i % 3 == 0 ? 150 : 4));
    const DeviceAddress begin = kBegin + first * kChunk + random() % kChunk;
    const DeviceAddress end = std::max(begin + 1, kBegin + last * kChunk + 1 + random() % kChunk);
    const auto from = model.begin() + static_cast<std::ptrdiff_t>(first);
    const auto to = model.begin() + static_cast<std::ptrdiff_t>(last) + 1;
    ASSERT_EQ(ready.Have(begin, end), std::all_of(from, to, [](bool each) { return each; })) << first << ' ' << last;
    const bool set = random() % 4 != 0;
    ready.Set({begin, end - begin}, set);
    std::fill(from, to, set);
  }
}

}  // namespace
}  // namespace hotpack
