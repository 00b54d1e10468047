#include "profiler/shapes.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace hotpack {
namespace {

// Requests and releases, as a history's tail.
class Tape {
 public:
  size_t Ask(uint32_t units) {
    tail_.units.push_back(units);
    tail_.ages.push_back(kStillLive);
    return tail_.units.size() - 1;
  }
  void Give(size_t request) { tail_.ages[request] = static_cast<uint32_t>(tail_.units.size() - request); }
  // A training iteration: `length` blocks, released in reverse order.
  void Hill(uint32_t length, uint32_t units) {
    std::vector<size_t> live;
    for (uint32_t k = 0; k < length; ++k) live.push_back(Ask(units + k));
    for (; !live.empty(); live.pop_back()) {
      size_t gradient = Ask(units + 1000);
      Give(live.back());
      Give(gradient);
    }
  }
  void Temporaries(int count) {
    for (int k = 0; k < count; ++k) Give(Ask(3));
  }
  HistoryTail Tail() const { return tail_; }

 private:
  HistoryTail tail_;
};

TEST(Shapes, LengthsInAnyOrder) {
  std::mt19937 random(3);
  Tape tape;
  size_t weights = tape.Ask(50'000);
  (void)weights;
  size_t times[3] = {};
  const uint32_t lengths[] = {10, 17, 31};
  for (int k = 0; k < 40; ++k) {
    size_t which = random() % 3;
    ++times[which];
    tape.Hill(lengths[which], 500);
    tape.Temporaries(4);
  }
  HistoryTail tail = tape.Tail();
  std::vector<Shape> shapes = FindShapes(tail);
  ASSERT_EQ(shapes.size(), 3u);
  uint64_t covered = 0;
  for (const Shape& shape : shapes) {
    bool known = false;
    for (size_t k = 0; k < 3; ++k) known |= shape.length == 2 * lengths[k] + 4 && shape.begins.size() + 2 >= times[k];
    EXPECT_TRUE(known) << shape.length << " x " << shape.begins.size();
    covered += shape.length * shape.begins.size();
    for (uint64_t begin : shape.begins) {
      for (uint64_t i = 0; i < shape.length; ++i) EXPECT_EQ(tail.units[begin + i], tail.units[shape.begins[0] + i]);
    }
  }
  EXPECT_GE(covered * 100, tail.units.size() * 90);
  EXPECT_GE(shapes[0].length * shapes[0].begins.size(), shapes[2].length * shapes[2].begins.size());
}

TEST(Shapes, PiecesThatOnlyComeTogetherAreOne) {
  Tape tape;
  for (int k = 0; k < 12; ++k) {
    for (int i = 0; i <= k % 3; ++i) tape.Hill(12, 500);
    tape.Hill(20, 700);  // an evaluation of two hills
    tape.Hill(9, 900);
  }
  std::vector<Shape> shapes = FindShapes(tape.Tail());
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes[0].length + shapes[1].length, 24u + 58u);
}

TEST(Shapes, NothingComesTwice) {
  Tape tape;
  for (uint32_t k = 10; k < 60; ++k) tape.Hill(k, 500);
  EXPECT_TRUE(FindShapes(tape.Tail()).empty());
  EXPECT_TRUE(FindShapes(HistoryTail()).empty());
  Tape one;
  one.Ask(1);
  EXPECT_TRUE(FindShapes(one.Tail()).empty());
}

TEST(Shapes, ProfilesHaveTheLivesSeen) {
  Tape tape;
  std::vector<size_t> carried;
  for (int k = 0; k < 5; ++k) {
    std::vector<size_t> live;
    for (uint32_t i = 0; i < 20; ++i) live.push_back(tape.Ask(100 + i));
    size_t small = tape.Ask(7);
    for (size_t old : carried) tape.Give(old);
    carried.assign(1, tape.Ask(2));  // until just after the next one's twentieth
    for (size_t block : live) tape.Give(block);
    if (k != 2) tape.Give(small);
    tape.Ask(1);                   // stays
    if (k == 2) tape.Give(small);  // a little later, once
  }
  HistoryTail tail = tape.Tail();
  Shape shape;
  shape.length = 23;
  for (uint64_t k = 0; k < 4; ++k) shape.begins.push_back(k * 23);
  Profile profile = BuildShapeProfile(tail, shape);
  ASSERT_EQ(profile.blocks.size(), 23u);
  EXPECT_EQ(profile.period, 23u);
  EXPECT_EQ(profile.unroll, 1u);
  EXPECT_TRUE(profile.blocks[0].planned);
  EXPECT_EQ(profile.blocks[0].age, 22u);
  EXPECT_EQ(profile.blocks[20].min_age, 2u);  // small
  EXPECT_EQ(profile.blocks[20].age, 3u);
  EXPECT_TRUE(profile.blocks[21].planned);  // carried: 21 + 22 > 23
  EXPECT_EQ(profile.blocks[21].age, 23u);
  EXPECT_FALSE(profile.blocks[22].planned);
  EXPECT_EQ(profile.carried_blocks, 1u);
  EXPECT_EQ(profile.carried_units, 2u);
}

// Pieces A B A B ..., of which the last two requests ask for the same: what A leaves to B lives into B for as long as
// it was seen to, though what B leaves to A is released sooner.
TEST(Shapes, WhatAnotherPieceCarriesIn) {
  HistoryTail tail;
  Shape shape;
  shape.length = 12;
  for (int k = 0; k < 4; ++k) {
    for (uint32_t i = 0; i < 8; ++i) tail.units.push_back(100 + i), tail.ages.push_back(1);
    tail.units.push_back(40), tail.ages.push_back(11);
    tail.units.push_back(41), tail.ages.push_back(10);
    shape.begins.push_back(tail.units.size());
    for (uint32_t i = 0; i < 10; ++i) tail.units.push_back(200 + i), tail.ages.push_back(1);
    tail.units.push_back(40), tail.ages.push_back(3);
    tail.units.push_back(41), tail.ages.push_back(1);
  }
  const Profile profile = BuildShapeProfile(tail, shape);
  ASSERT_EQ(profile.blocks.size(), 12u);
  EXPECT_EQ(profile.blocks[9].age, 1u);
  EXPECT_EQ(profile.blocks[10].age, 11u);
  EXPECT_EQ(profile.blocks[11].age, 10u);
  EXPECT_EQ(profile.carried_blocks, 2u);
  EXPECT_EQ(profile.carried_units, 81u);
}

TEST(Shapes, AlikeCycles) {
  auto make = [](std::vector<uint32_t> units) {
    Profile profile;
    for (uint32_t u : units) profile.blocks.push_back({u, 1, 1, true});
    return profile;
  };
  std::vector<uint32_t> units;
  for (uint32_t k = 0; k < 100; ++k) units.push_back(10 + k * 37 % 91);
  Profile one = make(units);
  std::vector<uint32_t> other = units;
  std::rotate(other.begin(), other.begin() + 33, other.end());
  EXPECT_TRUE(AlikeCycles(one, make(other)));
  other = units;
  other.insert(other.begin() + 40, 5);
  EXPECT_TRUE(AlikeCycles(one, make(other)));
  EXPECT_TRUE(AlikeCycles(make(other), one));
  other.insert(other.begin() + 70, {6, 7});
  EXPECT_FALSE(AlikeCycles(one, make(other)));
  other = units;
  other[3] = other[80] = 1;
  EXPECT_TRUE(AlikeCycles(one, make(other)));
  other[50] = 1;
  EXPECT_FALSE(AlikeCycles(one, make(other)));
  EXPECT_FALSE(AlikeCycles(one, make({})));
  EXPECT_EQ(CommonHead(one, make(other)), 3u);
}

TEST(CommonOpening, LooksPastTheFirstFewRequests) {
  auto opening = [](const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
    auto make = [](const std::vector<uint32_t>& units) {
      Profile profile;
      for (uint32_t u : units) profile.blocks.push_back({u, 1, 1, true});
      return profile;
    };
    const CommonStretch stretch = CommonOpening(make(a), make(b));
    return std::vector<uint32_t>{stretch.a, stretch.b, stretch.length};
  };
  EXPECT_EQ(opening({1, 2, 3, 4}, {1, 2, 3, 5, 6}), (std::vector<uint32_t>{0, 0, 3}));
  EXPECT_EQ(opening({70, 2, 3, 4, 5}, {90, 2, 3, 4, 6}), (std::vector<uint32_t>{1, 1, 3}));
  EXPECT_EQ(opening({2, 3, 4, 5}, {90, 91, 2, 3, 4, 5}), (std::vector<uint32_t>{0, 2, 4}));
  EXPECT_EQ(opening({90, 91, 2, 3, 4, 5}, {2, 3, 4, 5}), (std::vector<uint32_t>{2, 0, 4}));
  EXPECT_EQ(opening({1, 1, 1}, {1, 1, 1}), (std::vector<uint32_t>{0, 0, 3}));
  EXPECT_EQ(opening({1, 2}, {3, 4})[2], 0u);
  EXPECT_EQ(opening({}, {3, 4})[2], 0u);
  // Further in it would be a stretch in the middle.
  EXPECT_EQ(opening({10, 11, 12, 13, 14, 15, 16, 17, 18, 5, 6}, {5, 6})[2], 0u);
}

}  // namespace
}  // namespace hotpack
