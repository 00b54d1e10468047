// PlanSaver by itself: the opening for a later run, and the times at which plans are saved.
#include "runtime/engine/plan_saver.h"

#include "gtest/gtest.h"
#include "tests/runtime/script_helper.h"

namespace hotpack {
namespace {

constexpr int64_t kLimit = 10'000'000;  // nanoseconds

// A script of `n` requests, each released before the next but one, that was found at request `first`.
std::shared_ptr<const Script> Found(const std::vector<uint32_t>& units, uint64_t first) {
  std::vector<TestBlock> blocks;
  for (size_t i = 0; i < units.size(); ++i) blocks.push_back({units[i], 1, 0});
  Script script = *ScriptOf(blocks);
  script.profile.first_ordinal = first;
  return std::make_shared<const Script>(std::move(script));
}

// Requests that are each released by the next one.
void Play(History* history, const std::vector<uint32_t>& units) {
  for (uint32_t u : units) history->Released(history->Append(u));
}

const std::vector<uint32_t> kStep = {20, 21, 22};
std::vector<uint32_t> Iteration() {
  std::vector<uint32_t> units = {10, 11, 12, 13};
  for (int i = 0; i < 8; ++i) units.insert(units.end(), kStep.begin(), kStep.end());
  units.insert(units.end(), {14, 15, 16});
  return units;
}

RunToSave RunOf(std::vector<std::shared_ptr<const Script>> scripts) {
  return {std::move(scripts), kNoAnchor, 1000 * kBlockUnit, 2 << 20, uint64_t{1} << 30};
}

TEST(PlanSaver, ALaterRunBeginsWithTheIterationAndNotWithAPartOfIt) {
  History history(1 << 12);
  Play(&history, {100, 101, 102});
  for (int i = 0; i < 10; ++i) Play(&history, Iteration());
  const auto step = Found(kStep, 7), iteration = Found(Iteration(), 3);
  for (const auto& scripts : {std::vector{step, iteration}, std::vector{iteration, step}}) {
    PlanSaver saver;
    const auto plan = saver.Make(RunOf(scripts), history, kLimit);
    ASSERT_NE(plan, nullptr);
    ASSERT_EQ(plan->scripts.size(), 2u);
    EXPECT_EQ(plan->scripts[0]->size(), Iteration().size());
    EXPECT_EQ(plan->opening.before, 3u);
    EXPECT_EQ(plan->live_peak_bytes, 1000 * kBlockUnit);
    EXPECT_EQ(plan->chunk_bytes, uint64_t{2} << 20);
  }
}

// What comes one after the other keeps its order: the one that has served most.
TEST(PlanSaver, AScriptThatBeginsElsewhereIsNoPart) {
  const std::vector<uint32_t> other = {30, 31, 32, 33, 34};
  History history(1 << 12);
  for (int i = 0; i < 10; ++i) Play(&history, Iteration());
  const uint64_t change = history.Count();
  for (int i = 0; i < 20; ++i) Play(&history, other);
  PlanSaver saver;
  const auto plan = saver.Make(RunOf({Found(other, change), Found(Iteration(), 0)}), history, kLimit);
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->scripts[0]->size(), other.size());
}

TEST(PlanSaver, TheOpeningIsRememberedWhenTheHistoryForgetsIt) {
  History history(128);
  Play(&history, {100, 101, 102});
  for (int i = 0; i < 3; ++i) Play(&history, Iteration());
  const auto iteration = Found(Iteration(), 3);
  PlanSaver saver;
  const auto first = saver.Make(RunOf({iteration}), history, kLimit);
  ASSERT_NE(first, nullptr);
  ASSERT_FALSE(first->opening.empty());
  for (int i = 0; i < 20; ++i) Play(&history, Iteration());
  const auto later = saver.Make(RunOf({Found(kStep, 7), iteration}), history, kLimit);
  ASSERT_NE(later, nullptr);
  EXPECT_EQ(later->opening.units, first->opening.units);
  EXPECT_EQ(later->scripts[0]->size(), Iteration().size());
  PlanSaver other;  // it has never seen the beginning
  EXPECT_TRUE(other.Make(RunOf({iteration}), history, kLimit)->opening.empty());
}

TEST(PlanSaver, WithoutScriptsThereIsNoPlan) {
  History history(128);
  EXPECT_EQ(PlanSaver().Make(RunOf({}), history, kLimit), nullptr);
}

TEST(PlanSaver, TheIntervalDoubles) {
  PlanSaver saver;
  EXPECT_TRUE(saver.Due(1, 0));
  saver.NotePosted(10);
  saver.SetSaved(1);
  EXPECT_FALSE(saver.Due(1, 100)) << "nothing is new";
  EXPECT_FALSE(saver.Due(2, 19));
  EXPECT_TRUE(saver.Due(2, 20));
  saver.Forget();
  EXPECT_TRUE(saver.Due(1, 20)) << "this run begins otherwise than what is saved";
}

}  // namespace
}  // namespace hotpack
