// Edges between streams: counted as an address-by-address count has them, and avoided without any cost in height.
#include "packer/stream_edges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "packer/pack.h"
#include "packer/validator.h"
#include "random_instance.h"

namespace hotpack {
namespace {

using testing::InstanceShape;
using ::testing::IsEmpty;
using testing::RandomInstance;
using testing::TestSeed;

constexpr int64_t kSecond = 1'000'000'000;

// Looks at each address by itself.
int64_t EdgesByAddress(const Instance& instance, const Placement& placement, const BlockStreams& streams) {
  std::vector<std::set<uint16_t>> waits(instance.blocks.size());
  for (Offset address = 0; address < placement.height; ++address) {
    std::map<Clock, size_t> users;  // by the beginning of their use
    for (size_t i = 0; i < instance.blocks.size(); ++i) {
      const Offset offset = placement.offsets[i];
      if (offset <= address && address < offset + instance.blocks[i].size) {
        users[instance.blocks[i].residency.back().begin] = i;
      }
    }
    if (users.empty()) continue;
    size_t before = users.rbegin()->second;
    for (const auto& [begin, user] : users) {
      const bool counts = streams[user] != kAnyStream && streams[before] != kAnyStream;
      if (counts && streams[before] != streams[user]) waits[user].insert(streams[before]);
      before = user;
    }
  }
  int64_t edges = 0;
  for (const std::set<uint16_t>& streams_of_one : waits) edges += static_cast<int64_t>(streams_of_one.size());
  return edges;
}

struct Drawn {
  Instance instance;
  BlockStreams streams;
};

Drawn Draw(std::mt19937_64* random) {
  InstanceShape shape;
  shape.blocks = 1 + static_cast<int>((*random)() % 50);
  shape.clocks = 10 + static_cast<Clock>((*random)() % 80);
  shape.largest = 1 + static_cast<Bytes>((*random)() % 40);
  shape.alignments = (*random)() % 2 == 0 ? 0.2 : 0;
  shape.carried = (*random)() % 2 == 0 ? 0.2 : 0;
  shape.pinned = (*random)() % 4 == 0 ? 0.1 : 0;
  Drawn drawn{RandomInstance(shape, random), {}};
  const uint16_t streams = 1 + (*random)() % 4;
  for (size_t i = 0; i < drawn.instance.blocks.size(); ++i) {
    const bool unused = (*random)() % 16 == 0;
    drawn.streams.push_back(unused ? kAnyStream : static_cast<uint16_t>((*random)() % streams));
  }
  // Requests are made one after the other: no two uses begin at the same tick.
  const auto n = static_cast<Clock>(drawn.instance.blocks.size());
  for (Clock i = 0; i < n; ++i) {
    Block& block = drawn.instance.blocks[static_cast<size_t>(i)];
    for (Residency& part : block.residency) {
      const bool from_the_beginning = part.begin == 0 && block.residency.size() > 1;
      part.begin = from_the_beginning ? 0 : part.begin * n + i;
      part.end = part.end * n;
    }
  }
  return drawn;
}

TEST(StreamEdges, CountsEachAddress) {
  std::mt19937_64 random(TestSeed());
  int64_t all = 0;
  for (int i = 0; i < 1500; ++i) {
    const Drawn drawn = Draw(&random);
    const PackResult packed = Pack(drawn.instance, {.algorithm = Algorithm::kFirstFit});
    ASSERT_EQ(packed.status, PackStatus::kOk);
    const int64_t edges = CountStreamEdges(drawn.instance, packed.placement, drawn.streams);
    ASSERT_EQ(edges, EdgesByAddress(drawn.instance, packed.placement, drawn.streams)) << "instance " << i;
    all += edges;
  }
  EXPECT_GT(all, 1000);
}

TEST(StreamEdges, AreFewerAtTheSameHeight) {
  std::mt19937_64 random(TestSeed());
  int64_t before = 0, after = 0;
  for (int i = 0; i < 400; ++i) {
    const Drawn drawn = Draw(&random);
    const PackResult packed = Pack(drawn.instance, {.algorithm = Algorithm::kBestFit});
    ASSERT_EQ(packed.status, PackStatus::kOk);
    const Bytes height = packed.placement.height + static_cast<Bytes>(random() % 3);
    WorkClock clock;
    const Placement placement =
        AvoidStreamEdges(drawn.instance, packed.placement, drawn.streams, height, kSecond / 50, nullptr, &clock);
    ASSERT_THAT(Validate(drawn.instance, placement), IsEmpty()) << "instance " << i;
    ASSERT_LE(placement.height, height) << "instance " << i;
    const int64_t had = EdgesByAddress(drawn.instance, packed.placement, drawn.streams);
    const int64_t has = EdgesByAddress(drawn.instance, placement, drawn.streams);
    ASSERT_LE(has, had) << "instance " << i;
    before += had;
    after += has;
  }
  EXPECT_LT(after * 3, before * 2);
  RecordProperty("edges_before", static_cast<int>(before));
  RecordProperty("edges_after", static_cast<int>(after));
}

TEST(StreamEdges, InPlaceTheHeightStaysAndBothCountsAreTold) {
  std::mt19937_64 random(TestSeed());
  int64_t avoided = 0;
  for (int i = 0; i < 200; ++i) {
    const Drawn drawn = Draw(&random);
    const PackResult packed = Pack(drawn.instance, {.algorithm = Algorithm::kBestFit});
    ASSERT_EQ(packed.status, PackStatus::kOk);
    WorkClock clock;
    Placement placement = packed.placement;
    const StreamEdges edges =
        AvoidStreamEdgesInPlace(drawn.instance, drawn.streams, kSecond / 50, nullptr, &clock, &placement);
    ASSERT_THAT(Validate(drawn.instance, placement), IsEmpty()) << "instance " << i;
    ASSERT_LE(placement.height, packed.placement.height) << "instance " << i;
    ASSERT_EQ(edges.before, EdgesByAddress(drawn.instance, packed.placement, drawn.streams)) << "instance " << i;
    ASSERT_EQ(edges.after, EdgesByAddress(drawn.instance, placement, drawn.streams)) << "instance " << i;
    avoided += edges.before - edges.after;
  }
  EXPECT_GT(avoided, 0);
}

TEST(StreamEdges, BlocksThatNoWorkUsesAreOfNoStream) {
  EXPECT_FALSE(HasSeveralStreams({}));
  EXPECT_FALSE(HasSeveralStreams({3, kAnyStream, 3}));
  EXPECT_FALSE(HasSeveralStreams({kAnyStream, 3}));
  EXPECT_TRUE(HasSeveralStreams({kAnyStream, 3, 0}));
}

// Layers of a sharded model: each gathers its weights on a stream of its own, ahead of the layer that computes with
// them. A plan by size alone lets gathered weights lie where activations lay.
Drawn ShardedLayers(int layers, Bytes weights, Bytes activations) {
  Drawn drawn;
  auto add = [&drawn](Bytes size, Clock begin, Clock end, uint16_t stream) {
    Block block;
    block.size = size;
    block.residency.push_back({begin, end});
    drawn.instance.blocks.push_back(block);
    drawn.streams.push_back(stream);
  };
  for (int layer = 0; layer < layers; ++layer) {
    const Clock begin = 10 * layer;
    add(weights, begin, begin + 19, 1);                        // gathered one layer ahead
    add(activations, begin + 11, 20 * layers - begin + 5, 0);  // kept until the backward pass
    add(weights, begin + 12, begin + 18, 0);                   // a temporary block as large as the weights
  }
  return drawn;
}

// At the least height the last activation has no room but where gathered weights were: two edges, there and back.
TEST(StreamEdges, VanishWhereGatheredWeightsHaveRoom) {
  const Drawn drawn = ShardedLayers(12, 64, 100);
  const PackResult packed = Pack(drawn.instance);
  ASSERT_TRUE(packed.proven_optimal);
  EXPECT_GT(EdgesByAddress(drawn.instance, packed.placement, drawn.streams), 4);
  for (const Bytes more : {0, 64}) {
    WorkClock clock;
    const Placement placement = AvoidStreamEdges(drawn.instance, packed.placement, drawn.streams,
                                                 packed.placement.height + more, kSecond, nullptr, &clock);
    ASSERT_THAT(Validate(drawn.instance, placement), IsEmpty());
    EXPECT_LE(placement.height, packed.placement.height + more);
    EXPECT_EQ(EdgesByAddress(drawn.instance, placement, drawn.streams), more == 0 ? 2 : 0);
  }
}

TEST(StreamEdges, OneStreamChangesNothing) {
  std::mt19937_64 random(TestSeed());
  const Drawn drawn = Draw(&random);
  const PackResult packed = Pack(drawn.instance, {.algorithm = Algorithm::kBestFit});
  const BlockStreams one(drawn.instance.blocks.size(), 3);
  const Placement placement =
      AvoidStreamEdges(drawn.instance, packed.placement, one, packed.placement.height + 100, kSecond, nullptr, nullptr);
  EXPECT_EQ(placement.offsets, packed.placement.offsets);
}

TEST(StreamEdges, EndsWhenToldTo) {
  const Instance instance = testing::ManySizedInstance(3000, 5);
  BlockStreams streams;
  for (size_t i = 0; i < instance.blocks.size(); ++i) streams.push_back(static_cast<uint16_t>(i % 3));
  const PackResult packed = Pack(instance, {.algorithm = Algorithm::kFirstFit});
  const std::atomic<bool> cancel{true};
  const Placement placement =
      AvoidStreamEdges(instance, packed.placement, streams, packed.placement.height, kSecond, &cancel, nullptr);
  EXPECT_THAT(Validate(instance, placement), IsEmpty());
  EXPECT_LE(placement.height, packed.placement.height);
}

}  // namespace
}  // namespace hotpack
