#include "runtime/engine/engine_stats.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "runtime/engine/caller_figures.h"

namespace hotpack {
namespace {

hotpack_stats Figures(EngineStats& stats, uint64_t driver_calls = 0) {
  hotpack_stats figures{};
  stats.AddTo(&figures, driver_calls);
  return figures;
}

TEST(EngineStats, DisplacedRequestsAreNotCountedAsDynamic) {
  EngineStats stats(nullptr);
  stats.NotePlanned();
  stats.NoteDynamic();
  stats.NoteDynamic();
  stats.NoteDisplaced();
  const hotpack_stats figures = Figures(stats);
  EXPECT_EQ(figures.requests, 3u);
  EXPECT_EQ(figures.planned, 1u);
  EXPECT_EQ(figures.dynamic, 1u);
  EXPECT_EQ(figures.displaced, 1u);
  EXPECT_EQ(figures.steady_iteration, -1);
}

TEST(EngineStats, TheSteadyFiguresCountFromItsBeginning) {
  EngineStats stats(nullptr);
  for (int i = 0; i < 10; ++i) stats.NoteDynamic();
  stats.SetIterations(2, 10);
  stats.BeginSteady(7);
  for (int i = 0; i < 4; ++i) stats.NotePlanned();
  stats.NoteDynamic();
  stats.AddIterationsSince(5, 20);  // ten requests are two iterations
  const hotpack_stats figures = Figures(stats, 10);
  EXPECT_EQ(figures.steady_iteration, 2);
  EXPECT_EQ(figures.requests_steady, 5u);
  EXPECT_EQ(figures.planned_steady, 4u);
  EXPECT_EQ(figures.iterations, 4u);
  EXPECT_EQ(figures.driver_memory_calls_steady, 2u);  // three in two iterations, rounded up
  stats.EndSteady();
  EXPECT_FALSE(stats.steady());
  EXPECT_EQ(Figures(stats).planned_steady, 0u);
}

// What came before the repetition is one iteration if it was more than a part of one.
TEST(EngineStats, IterationsAreCountedFromTheRepetitionOn) {
  EngineStats stats(nullptr);
  Profile profile;
  profile.period = 10;
  profile.seen_from = 5;
  stats.RecountIterations(profile, 35);
  EXPECT_EQ(stats.iterations(), 3u);
  profile.seen_from = 6;
  stats.RecountIterations(profile, 36);
  EXPECT_EQ(stats.iterations(), 4u);
  stats.NoteMark();  // the program knows better
  stats.RecountIterations(profile, 36);
  EXPECT_EQ(stats.iterations(), 1u);
}

// The request in which the steady state begins belongs to the state before.
TEST(EngineStats, HeapAllocationsOfTheFirstSteadyRequestAreNotCounted) {
  EngineStats stats(nullptr);
  {
    EngineStats::HeapScope heap(&stats);
    stats.BeginSteady(0);
    CountHeapAllocation();
  }
  EXPECT_EQ(Figures(stats).heap_allocations_steady, 0u);
  {
    EngineStats::HeapScope heap(&stats);
    CountHeapAllocation();
  }
  EXPECT_EQ(Figures(stats).heap_allocations_steady, 1u);
}

TEST(EngineStats, FiguresArePublishedWhereTheyAreShared) {
  hotpack_stats shared{};
  EngineStats stats(&shared);
  stats.NotePlanned();
  stats.Publish(Figures(stats));
  EXPECT_EQ(shared.planned, 1u);
  EXPECT_EQ(&stats.published(), &shared);
}

TEST(CallerFigures, AnyFigureIsCountedByAnyThread) {
  CallerFigures counts;
  const auto count = [&counts] {
    for (int i = 0; i < 1000; ++i) counts.Add(&hotpack_stats::cross_stream, 1);
    counts.Add(&hotpack_stats::requests, 5);
  };
  std::thread other(count);
  count();
  other.join();
  hotpack_stats figures{};
  figures.requests = 7;  // the engine's own count
  figures.steady_iteration = -1;
  counts.AddTo(&figures);
  EXPECT_EQ(figures.cross_stream, 2000u);
  EXPECT_EQ(figures.cross_stream_ns, 0u);
  EXPECT_EQ(figures.requests, 17u);
  EXPECT_EQ(figures.steady_iteration, -1);
}

}  // namespace
}  // namespace hotpack
