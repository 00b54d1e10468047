// Growth, spikes and phases of a run, and stacks that lead to the user's line.
#include "tools/recording/run_course.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/recording/peak_lines.h"
#include "tools/recording/stack_text.h"

namespace hotpack {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kMiB = 1 << 20;

// Builds a run of marked iterations; each has `work` MiB that it releases.
class Recorded {
 public:
  uint64_t Allocate(uint64_t bytes) {
    file_.trace.events.push_back({EventKind::kAllocate, 0, 0, 0, next_, bytes, 0});
    sizes_.push_back(bytes);
    return next_++;
  }
  void Release(uint64_t id) { file_.trace.events.push_back({EventKind::kRelease, 0, 0, 0, id, sizes_[id], 0}); }
  void Mark() { file_.trace.events.push_back({EventKind::kMark, 0, 0, 0, 0, 0, 0}); }
  void Work(uint64_t mebibytes, int blocks = 4) {
    std::vector<uint64_t> ids;
    for (int i = 0; i < blocks; ++i) ids.push_back(Allocate(mebibytes * kMiB / static_cast<uint64_t>(blocks)));
    for (const uint64_t id : ids) Release(id);
  }
  void Stack(uint64_t id, const std::string& text) {
    file_.notes.stacks.push_back({id, static_cast<NameOrdinal>(file_.notes.names.size())});
    file_.notes.names.push_back(text);
  }
  const TraceFile& file() const { return file_; }
  std::vector<std::string> Sentences() const { return CourseSentences(CourseOf(file_)); }

 private:
  TraceFile file_;
  std::vector<uint64_t> sizes_;
  uint64_t next_ = 0;
};

TEST(RunCourseTest, AConstantRunHasNothingToSay) {
  Recorded run;
  run.Allocate(40 * kMiB);
  for (int i = 0; i < 20; ++i) run.Mark(), run.Work(8);
  run.Mark();
  EXPECT_THAT(run.Sentences(), IsEmpty());
  const RunCourse course = CourseOf(run.file());
  EXPECT_TRUE(course.marked);
  EXPECT_TRUE(course.growth_known);
  EXPECT_EQ(course.iterations.size(), 20u);
  ASSERT_EQ(course.phases.size(), 3u);
  EXPECT_EQ(course.phases[0].name, "before the first mark");
  EXPECT_EQ(course.phases[1].name, "first iteration");
  EXPECT_EQ(course.phases[2].name, "training");
  EXPECT_EQ(course.phases[2].iterations, 19u);
  EXPECT_EQ(course.phases[2].live_peak, 48 * kMiB);
}

// The program's end releases everything, which changes nothing.
TEST(RunCourseTest, ALeakIsSaidWithItsLine) {
  Recorded run;
  std::vector<uint64_t> kept;
  run.Allocate(4 * kMiB);
  for (int i = 0; i < 20; ++i) {
    run.Mark();
    for (int k = 0; k < 2; ++k) {
      kept.push_back(run.Allocate(kMiB));
      run.Stack(kept.back(), "add (/job/leak.py:6)\nmain (/job/leak.py:20)");
    }
    run.Stack(run.Allocate(512), "log (/job/leak.py:9)");
    run.Work(8);
  }
  run.Mark();
  for (const uint64_t id : kept) run.Release(id);
  EXPECT_THAT(run.Sentences(), ElementsAre("Memory grows by 2.0 MiB an iteration, over 18 iterations: 3 blocks of each "
                                           "that nothing releases, most of it asked for in leak.py:6 (add)."));
}

TEST(RunCourseTest, WithoutMarksTheIterationThatRepeatsCounts) {
  Recorded run;
  run.Allocate(4 * kMiB);
  for (int i = 0; i < 30; ++i) run.Allocate(kMiB / 4), run.Work(24, 24), run.Work(6, 12);
  const RunCourse course = CourseOf(run.file());
  EXPECT_FALSE(course.marked);
  EXPECT_THAT(course.phases, IsEmpty());
  ASSERT_TRUE(course.growth.has_value());
  EXPECT_EQ(course.growth->bytes, kMiB / 4);
  EXPECT_EQ(course.growth->blocks, 1u);
}

// A state that is made once, memory that goes up and down, less than can matter, too few iterations.
TEST(RunCourseTest, WhatIsNoGrowth) {
  Recorded once, sways, little, few;
  for (int i = 0; i < 20; ++i) {
    once.Mark(), sways.Mark(), little.Mark();
    if (i == 9) once.Allocate(16 * kMiB);
    once.Work(64), little.Work(8);
    little.Allocate(512);
    const uint64_t held = sways.Allocate((1 + static_cast<uint64_t>(i * 7 % 5)) * kMiB);
    sways.Mark();
    sways.Release(held);
  }
  for (int i = 0; i < 6; ++i) few.Mark(), few.Work(8), few.Allocate(kMiB);
  for (Recorded* run : {&once, &sways, &little, &few}) {
    run->Mark();
    EXPECT_FALSE(CourseOf(run->file()).growth.has_value());
  }
}

TEST(RunCourseTest, ASpikeIsSaid) {
  Recorded run;
  run.Allocate(100 * kMiB);
  for (int i = 0; i < 20; ++i) run.Mark(), run.Work(i == 11 ? 188 : i == 4 ? 150 : 100, i == 11 ? 8 : 4);
  run.Mark();
  EXPECT_THAT(run.Sentences(), ElementsAre("The peak is in iteration 12 (288.0 MiB); the usual iterations need 200.0 "
                                           "MiB, and 1 other one more than that."));
  EXPECT_EQ(CourseOf(run.file()).phases.back().name, "others");
}

TEST(RunCourseTest, ASpikeOutsideOfTheIterations) {
  Recorded run;
  run.Work(300);
  run.Allocate(100 * kMiB);
  for (int i = 0; i < 6; ++i) run.Mark(), run.Work(100);
  run.Mark();
  EXPECT_THAT(run.Sentences(), ElementsAre("The peak is in the part before the first iteration (300.0 MiB); the usual "
                                           "iterations need 200.0 MiB."));
}

// What grows is highest at its end, which is no spike.
TEST(RunCourseTest, GrowthIsNoSpike) {
  Recorded run;
  for (int i = 0; i < 40; ++i) run.Mark(), run.Work(16), run.Allocate(4 * kMiB);
  run.Mark();
  const RunCourse course = CourseOf(run.file());
  EXPECT_TRUE(course.growth.has_value());
  EXPECT_FALSE(course.spike.has_value());
}

TEST(StackTextTest, PythonFirstAndNoRecorder) {
  const std::string stack =
      "torch::unwind::unwind() (/v/libtorch_cpu.so:108146796)\n"
      "torch::CapturedTraceback::gather(bool, bool, bool) (/v/libtorch_cpu.so:7)\n"
      "at::native::empty_cuda (/v/libtorch_cuda.so:99)\n"
      "linear (/v/site-packages/torch/nn/functional.py:125)\n"
      "forward (/job/model.py:14)\n"
      "<module> (train.py:40)";
  EXPECT_EQ(ReadableStack(stack),
            "linear (/v/site-packages/torch/nn/functional.py:125)\nforward (/job/model.py:14)\n"
            "<module> (train.py:40)\nat::native::empty_cuda (/v/libtorch_cuda.so)");
  EXPECT_EQ(SourceLine(stack), "model.py:14 (forward)");
}

TEST(StackTextTest, OddStacks) {
  EXPECT_EQ(SourceLine(""), "");
  EXPECT_EQ(ReadableStack(""), "");
  EXPECT_EQ(SourceLine("main (train.cc:7)"), "main");
  EXPECT_EQ(SourceLine("at::empty(c10::Layout) (t.so)\ntorch::autograd::generated::MmBackward0::apply(int&&) (t.so)"),
            "torch::autograd::generated::MmBackward0::apply");
  EXPECT_EQ(SourceLine("torch::unwind::unwind() (a.so:1)"), "torch::unwind::unwind") << "better than nothing";
  EXPECT_EQ(SourceLine("f (<stdin>:3)"), "<stdin>:3 (f)");
  EXPECT_EQ(SourceLine("f (/x/site-packages/lib/a.py:3)\ng (/x/site-packages/lib/b.py:4)"), "a.py:3 (f)");
  EXPECT_EQ(SourceLine("</script><b>evil"), "</script><b>evil");
  EXPECT_EQ(SourceLine("a (b) (c.py:5)"), "c.py:5 (a (b))");
}

TEST(PeakLinesTest, LargestFirstAndAllOfThePeak) {
  Recorded run;
  EXPECT_THAT(PeakByLine(run.file()), IsEmpty());
  run.Allocate(kMiB);  // no stack
  run.Stack(run.Allocate(3 * kMiB), "f (a.py:1)\nx (z.py:1)");
  run.Stack(run.Allocate(2 * kMiB), "g (b.py:2)");
  run.Stack(run.Allocate(2 * kMiB), "g (b.py:2)\nouter (c.py:9)");
  const uint64_t last = run.Allocate(100);
  run.Release(last);
  run.Allocate(100);
  const std::vector<PeakLine> lines = PeakByLine(run.file());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].line, "b.py:2 (g)");
  EXPECT_EQ(lines[0].blocks, 2u);
  EXPECT_EQ(lines[0].bytes, 4 * kMiB);
  EXPECT_EQ(lines[1].line, "a.py:1 (f)");
  EXPECT_EQ(lines[1].stack, "f (a.py:1)\nx (z.py:1)");
  EXPECT_EQ(lines[2].line, "");
  EXPECT_EQ(lines[2].bytes, kMiB + 512) << "the first moment of the peak";
}

}  // namespace
}  // namespace hotpack
