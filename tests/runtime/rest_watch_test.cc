// When a script takes over from an envelope.
#include "runtime/engine/rest_watch.h"

#include <gtest/gtest.h>

namespace hotpack {
namespace {

using Advice = RestWatch::Advice;

// Iterations that repeat, each with so many calls of the driver.
class Row {
 public:
  void Note(int iterations, uint64_t calls = 0) {
    for (int i = 0; i < iterations; ++i) watch.NoteIteration(/*same=*/true, calls_ += calls);
  }
  // A script is planned and pending.
  void Plan() {
    EXPECT_EQ(watch.Next(/*pending=*/false), Advice::kPlan);
    watch.NotePosted();
    EXPECT_EQ(watch.Next(/*pending=*/true), Advice::kTakeOver);
  }

  RestWatch watch;

 private:
  uint64_t calls_ = 0;
};

TEST(RestWatch, PlansWhenSixteenIterationsWereTheSame) {
  Row row;
  row.Note(15);
  EXPECT_EQ(row.watch.Next(false), Advice::kNone);
  row.Note(1);
  EXPECT_EQ(row.watch.Next(false), Advice::kPlan);
  EXPECT_EQ(row.watch.Next(true), Advice::kPlan) << "what is pending is of an earlier rest";
  row.watch.NotePosted();
  EXPECT_EQ(row.watch.Next(false), Advice::kNone) << "the planner works, or found nothing";
  EXPECT_EQ(row.watch.Next(true), Advice::kTakeOver);
  row.Note(16);
  EXPECT_EQ(row.watch.Next(false), Advice::kPlan) << "once more";
}

TEST(RestWatch, AnIterationThatDiffersBeginsAnew) {
  Row row;
  row.Note(16);
  row.Plan();
  row.watch.NoteIteration(/*same=*/false, 0);
  EXPECT_EQ(row.watch.Next(true), Advice::kNone);
  row.Note(63);
  EXPECT_EQ(row.watch.Next(true), Advice::kNone);
  row.Note(1);
  EXPECT_EQ(row.watch.Next(true), Advice::kPlan) << "the pending script has the sizes of before";
}

// An evaluation each 20 steps: a script would not serve it.
TEST(RestWatch, ARestIsFourTimesAsLongAsAnyBefore) {
  Row row;
  for (int round = 0; round < 50; ++round) {
    row.Note(19, 1);
    EXPECT_EQ(row.watch.Next(false), round == 0 ? Advice::kPlan : Advice::kNone) << round;
    row.watch.NoteIteration(/*same=*/false, 0);
  }
  row.Note(75, 1);
  EXPECT_EQ(row.watch.Next(false), Advice::kNone);
  row.Note(1, 1);
  row.Plan();
}

TEST(RestWatch, AScriptMayHoldASixtyFourthMore) {
  for (const uint64_t most : {6400u, 6500u, 6501u, 9000u}) {
    Row row;
    row.Note(16);
    row.Plan();
    EXPECT_EQ(row.watch.MayTakeOver(most, 6400), most <= 6500) << most;
  }
}

TEST(RestWatch, AnEnvelopeThatCallsTheDriverIsWorthMemory) {
  for (const int called : {7, 8}) {
    Row row;
    row.Note(16 - called);
    row.Note(called, 3);
    row.Plan();
    EXPECT_EQ(row.watch.MayTakeOver(9000, 6400), called == 8) << called;
  }
}

TEST(RestWatch, TheNextScriptNeedsFourTimesAsMany) {
  Row row;
  int needed = 16;
  for (const bool taken : {true, false, true}) {
    row.Note(needed - 1);
    EXPECT_EQ(row.watch.Next(false), Advice::kNone) << needed;
    row.Note(1);
    row.Plan();
    EXPECT_EQ(row.watch.MayTakeOver(taken ? 1 : 9000, 6400), taken);
    needed *= 4;
  }
}

TEST(RestWatch, ComparesSizesOfTheHistory) {
  History history(1 << 10);
  for (const uint32_t units : {9, 1, 2, 3, 1, 2, 3, 1, 2, 4}) history.Append(units);
  EXPECT_TRUE(SameRequests(history, 1, 3));
  EXPECT_FALSE(SameRequests(history, 0, 3));
  EXPECT_FALSE(SameRequests(history, 4, 3));
  for (int i = 0; i < 1 << 12; ++i) history.Append(1);
  EXPECT_FALSE(SameRequests(history, 1, 3)) << "not stored any more";
}

}  // namespace
}  // namespace hotpack
