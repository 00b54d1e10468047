#include "profiler/history.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace hotpack {
namespace {

TEST(Units, RoundUpTo512) {
  EXPECT_EQ(UnitsOf(1), 1u);
  EXPECT_EQ(UnitsOf(512), 1u);
  EXPECT_EQ(UnitsOf(513), 2u);
  EXPECT_EQ(UnitsOf(kMaxRequestBytes), uint32_t{1} << 31);
}

TEST(History, AgeCountsTheRequestsThatABlockMeets) {
  History history(64);
  uint64_t a = history.Append(10);
  uint64_t b = history.Append(20);
  EXPECT_EQ(history.Age(a), kStillLive);
  EXPECT_EQ(history.Released(b), 1u);  // released before any further request
  EXPECT_EQ(history.Released(a), 2u);  // met a and b
  EXPECT_EQ(history.Age(a), 2u);
  EXPECT_EQ(history.Age(b), 1u);
  EXPECT_EQ(history.Units(a), 10u);
  EXPECT_EQ(history.Count(), 2u);
}

TEST(History, WindowIsAPowerOfTwoAndAtLeast64) {
  EXPECT_EQ(History(1).Window(), 64u);
  EXPECT_EQ(History(64).Window(), 64u);
  EXPECT_EQ(History(65).Window(), 128u);
}

TEST(History, RemembersTheLastRequestsOnly) {
  History history(64);
  for (uint32_t i = 0; i < 1000; ++i) history.Append(i);
  EXPECT_TRUE(history.Holds(999));
  EXPECT_TRUE(history.Holds(1000 - 63));
  EXPECT_FALSE(history.Holds(1000 - 65));
  EXPECT_EQ(history.Units(990), 990u);
}

TEST(History, AReleaseWithItsUnitsIsTheSame) {
  for (const int later : {0, 1, 62, 63, 64, 200}) {
    History history(64), with_units(64);
    for (History* each : {&history, &with_units}) {
      each->Append(7);
      for (int i = 0; i < later; ++i) each->Append(1);
    }
    EXPECT_EQ(with_units.Released(0, 7), history.Released(0));
    for (uint64_t i = history.Count() < 64 ? 0 : history.Count() - 63; i < history.Count(); ++i) {
      EXPECT_EQ(with_units.Age(i), history.Age(i)) << later;
      EXPECT_EQ(with_units.Units(i), history.Units(i)) << later;
    }
  }
}

TEST(History, ALateReleaseDoesNotTouchTheRequestThatTookItsCell) {
  History history(64);
  uint64_t weights = history.Append(7);
  for (int i = 0; i < 64; ++i) history.Append(1);
  EXPECT_EQ(history.Age(64), kStillLive);  // in the cell that the weights had
  EXPECT_EQ(history.Released(weights), 65u);
  EXPECT_EQ(history.Age(64), kStillLive);
}

TEST(History, NotesStreamsOfThoseThatNameOne) {
  History history(64);
  history.NoteStream(history.Append(1), 0);
  EXPECT_FALSE(history.HasStreams());  // and no memory for them
  EXPECT_TRUE(CopyTail(history, 1, 64).streams.empty());
  history.NoteStream(history.Append(2), 5);
  history.Append(3);
  EXPECT_EQ(history.Stream(0), 0);
  EXPECT_EQ(history.Stream(1), 5);
  const HistoryTail tail = CopyTail(history, 3, 2);
  EXPECT_EQ(tail.streams, (std::vector<uint16_t>{5, 0}));
  EXPECT_EQ(tail.StreamOf(0), 5);
}

TEST(CopyTail, GivesTheRequestsBeforeTheEnd) {
  History history(64);
  for (uint32_t i = 0; i < 50; ++i) history.Append(i + 1);
  history.Released(48);
  HistoryTail tail = CopyTail(history, 49, 10);
  ASSERT_EQ(tail.first, 39u);
  ASSERT_EQ(tail.end(), 49u);
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(tail.units[i], 40 + i);
  EXPECT_EQ(tail.ages[9], 2u);
  EXPECT_EQ(tail.ages[8], kStillLive);
}

TEST(CopyTail, LeavesOutWhatHasBeenOvertaken) {
  History history(64);
  for (uint32_t i = 0; i < 500; ++i) history.Append(i);
  HistoryTail tail = CopyTail(history, 500, 1000);
  EXPECT_EQ(tail.end(), 500u);
  EXPECT_GE(tail.first, 500u - 64);
  for (uint64_t i = 0; i < tail.units.size(); ++i) EXPECT_EQ(tail.units[i], tail.first + i);
  EXPECT_TRUE(CopyTail(history, 100, 1000).units.empty());  // long gone
  EXPECT_EQ(CopyTail(history, 9999, 10).end(), 500u);       // nothing from the future
}

// A reader never mistakes a newer request for an older one, however fast the writer overtakes it.
TEST(CopyTail, IsRightWhileTheWriterGoesOn) {
  History history(256);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint32_t i = 0; !stop; ++i) history.Released(history.Append(i));
  });
  for (int round = 0; round < 2000; ++round) {
    HistoryTail tail = CopyTail(history, history.Count(), history.Window());
    for (uint64_t i = 0; i < tail.units.size(); ++i) {
      if (tail.units[i] != static_cast<uint32_t>(tail.first + i)) {
        ADD_FAILURE() << "request " << tail.first + i << " read as " << tail.units[i];
        round = 2000;
        break;
      }
    }
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace hotpack
