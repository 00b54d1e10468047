// The set of known scripts by itself: look-up, bounds, and successors.
#include "runtime/script/variants.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace hotpack {
namespace {

std::shared_ptr<const Script> MakeScript(const std::vector<uint32_t>& units) {
  Profile profile;
  profile.period = static_cast<uint32_t>(units.size());
  for (uint32_t u : units) profile.blocks.push_back({u, 1, 1, true});
  std::vector<uint32_t> index;
  Instance instance = ToInstance(profile, &index);
  std::vector<Offset> offsets(index.size(), 0);  // one lives at a time
  return std::make_shared<const Script>(CompileScript(profile, index, offsets, {}, 0, 0));
}

void Ask(History* history, const std::vector<uint32_t>& units) {
  for (uint32_t u : units) history->Append(u);
}

TEST(Variants, TheSameRequestsAreTheSameVariant) {
  Variants variants;
  Variant* a = variants.Add(MakeScript({1, 2, 3, 4}), 0, 0);
  uint64_t number = a->number;
  Variant* b = variants.Add(MakeScript({1, 2, 3, 5}), 0, 0);
  EXPECT_NE(b->number, number);
  EXPECT_EQ(variants.size(), 2u);
  Variant* again = variants.Add(MakeScript({1, 2, 3, 4}), 7, 0);
  EXPECT_EQ(again, a);
  EXPECT_NE(again->number, number);  // another script
  EXPECT_EQ(again->used_at, 7u);
  EXPECT_EQ(variants.size(), 2u);
  EXPECT_EQ(variants.Find(number), nullptr);
  EXPECT_EQ(variants.Find(again->script.get()), again);
  variants.Remove(again->number);
  EXPECT_EQ(variants.size(), 1u);
}

TEST(Variants, TheLeastRecentlyUsedGoes) {
  Variants variants;
  std::vector<uint64_t> numbers;
  for (uint32_t k = 0; k < Variants::kMax; ++k)
    numbers.push_back(variants.Add(MakeScript({k + 1, 7, 7, 7}), 10 + k, 0)->number);
  variants.Find(numbers[0])->used_at = 1000;
  uint64_t followed = numbers[1];  // the oldest, but followed
  for (uint32_t k = 0; k < 3; ++k) variants.Add(MakeScript({1000 + k, 7, 7, 7}), 2000 + k, followed);
  EXPECT_EQ(variants.size(), Variants::kMax);
  EXPECT_EQ(variants.evicted(), 3u);
  EXPECT_NE(variants.Find(numbers[0]), nullptr);
  EXPECT_NE(variants.Find(numbers[1]), nullptr);
  for (size_t k = 2; k < 5; ++k) EXPECT_EQ(variants.Find(numbers[k]), nullptr) << k;
  EXPECT_NE(variants.Find(numbers[5]), nullptr);
}

TEST(Variants, HostMemoryIsBounded) {
  Variants variants;
  std::vector<uint32_t> units(100'000);
  for (uint32_t k = 0; k < 12; ++k) {
    for (uint32_t i = 0; i < units.size(); ++i) units[i] = 1 + (i * 7 + k) % 1000;
    EXPECT_NE(variants.Add(MakeScript(units), k, 0), nullptr);
  }
  EXPECT_GE(variants.size(), 2u);
  EXPECT_LT(variants.size(), 8u);  // 64 MiB at well over 100 bytes a request
  EXPECT_EQ(variants.size() + variants.evicted(), 12u);
}

TEST(Variants, HeadsAreTold) {
  Variants variants;
  uint64_t a = variants.Add(MakeScript({1, 2, 3, 4, 5}), 1, 0)->number;
  uint64_t b = variants.Add(MakeScript({1, 2, 9, 4, 5}), 2, 0)->number;
  uint64_t c = variants.Add(MakeScript({8, 2, 3, 4, 5}), 3, 0)->number;
  History history(64);
  Ask(&history, {5, 1});
  EXPECT_EQ(variants.MatchHead(history, 1, 1, 0)->number, b);  // used last
  EXPECT_EQ(variants.MatchHead(history, 1, 1, b)->number, a);
  for (uint64_t number : {c, a, c}) variants.NoteIteration(number, 0);
  EXPECT_EQ(variants.MatchHead(history, 1, 1, 0)->number, a);  // came after c
  Ask(&history, {2, 9});
  EXPECT_EQ(variants.MatchHead(history, 1, 3, 0)->number, b);
  Ask(&history, {3});
  EXPECT_EQ(variants.MatchHead(history, 1, 4, 0), nullptr);
  Ask(&history, {4, 4, 4, 4});
  EXPECT_EQ(variants.MatchHead(history, 1, 8, 0), nullptr);  // longer than all
}

TEST(Variants, ContextsAreFoundAnywhere) {
  Variants variants;
  std::vector<uint32_t> units;
  for (uint32_t i = 0; i < 50; ++i) units.push_back(i + 1);
  variants.Add(MakeScript({90, 91, 92, 93, 20, 21, 22, 23, 24, 25}), 0, 0);
  uint64_t long_one = variants.Add(MakeScript(units), 0, 0)->number;
  History history(64);
  Ask(&history, {17, 18, 19, 20, 21, 22, 23, 24});
  uint32_t entry = 0;
  Variant* found = variants.MatchContext(history, 7, 4, 0, &entry);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->number, long_one);  // eight requests rather than five
  EXPECT_EQ(entry, 23u);
  EXPECT_EQ(variants.MatchContext(history, 7, 9, 0, &entry), nullptr);
  EXPECT_NE(variants.MatchContext(history, 7, 5, long_one, &entry), nullptr);
  EXPECT_EQ(entry, 8u);
  Ask(&history, {49, 50, 1, 2});  // over the cycle's end
  found = variants.MatchContext(history, 11, 4, 0, &entry);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(entry, 1u);
}

// Three of a, then b and c by turns, twice: known after it has come once.
TEST(Variants, WhatComesInTheSameOrderIsPredicted) {
  Variants variants;
  uint64_t a = variants.Add(MakeScript({1, 2, 3, 4, 5}), 1, 0)->number;
  uint64_t b = variants.Add(MakeScript({6, 7, 8, 9}), 2, 0)->number;
  uint64_t c = variants.Add(MakeScript({10, 11, 12, 13}), 3, 0)->number;
  const uint64_t order[] = {a, a, a, b, c, b, c};
  int predicted = 0;
  for (int k = 0; k < 70; ++k) {
    uint64_t now = order[k % 7], next = order[(k + 1) % 7];
    variants.NoteIteration(now, now == b ? 2 : 0);  // b begins at its entry 2
    uint32_t phase = 77;
    Variant* guess = variants.Predict(now, &phase);
    if (guess != nullptr) {
      ++predicted;
      EXPECT_EQ(guess->number, next) << k;
      EXPECT_EQ(phase, next == b ? 2u : 0u);
    } else if (k >= 12) {
      EXPECT_EQ(next, now) << k;  // each change was foreseen
    }
  }
  EXPECT_GE(predicted, 40);
}

// In no order: hardly anything is predicted, because that was wrong before.
TEST(Variants, WhatComesInAnyOrderIsNotPredicted) {
  Variants variants;
  std::vector<uint64_t> numbers;
  for (uint32_t k = 0; k < 5; ++k) numbers.push_back(variants.Add(MakeScript({k + 1, 2, 3, 4, 5}), 1, 0)->number);
  std::mt19937 random(5);
  int predicted = 0;
  for (int k = 0; k < 1000; ++k) {
    uint64_t now = numbers[random() % 5];
    variants.NoteIteration(now, 0);
    uint32_t phase = 0;
    predicted += variants.Predict(now, &phase) != nullptr;
  }
  EXPECT_LE(predicted, 60);
}

TEST(Variants, ReplacementsKeepTheirPlace) {
  Variants variants;
  uint64_t a = variants.Add(MakeScript({1, 2, 3, 4, 5}), 1, 0)->number;
  uint64_t b = variants.Add(MakeScript({6, 7, 8, 9}), 2, 0)->number;
  for (int k = 0; k < 6; ++k) variants.NoteIteration(k % 2 == 0 ? b : a, 0);
  Variant* other = variants.Replace(b, MakeScript({6, 7, 8, 9}));
  ASSERT_NE(other, nullptr);
  EXPECT_NE(other->number, b);
  uint32_t phase = 0;
  EXPECT_EQ(variants.Predict(a, &phase), other);
  EXPECT_EQ(variants.Replace(b, MakeScript({6, 7, 8, 9})), nullptr);
}

// Plans in its place: a few at once, then ever rarer; again more often once they have helped.
TEST(Variants, ReoptimisationBacksOff) {
  Variant variant;
  uint64_t made[2] = {};
  for (int half = 0; half < 2; ++half) {
    for (int k = 0; k < 500; ++k) {
      variant.NotePass(/*clean=*/false);
      if (!variant.MayReplan()) continue;
      variant.NoteReplan();
      ++made[half];
    }
  }
  EXPECT_GE(made[0], 8u);
  EXPECT_LE(made[0], 14u);
  EXPECT_LE(made[1], 2u);
  for (int k = 0; k < 200; ++k) variant.NotePass(/*clean=*/true);
  EXPECT_EQ(variant.replans, 0u);
}

}  // namespace
}  // namespace hotpack
