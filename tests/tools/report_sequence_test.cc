// Iterations that differ in the report: the sequence that they have in common.
#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/report/page.h"
#include "tools/report/sequence.h"

namespace hotpack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A recording of marked steps that request these sizes (KiB) in order, and release them from the last one on.
TraceFile MarkedSteps(const std::vector<std::vector<uint64_t>>& steps) {
  TraceFile file;
  uint64_t id = 0;
  for (const std::vector<uint64_t>& sizes : steps) {
    for (const uint64_t kib : sizes) file.trace.events.push_back({EventKind::kAllocate, 0, 0, 0, id++, kib << 10, 0});
    for (size_t k = 0; k < sizes.size(); ++k) {
      const uint64_t kib = sizes[sizes.size() - 1 - k];
      file.trace.events.push_back({EventKind::kRelease, 0, 0, 0, id - 1 - k, kib << 10, 0});
    }
    file.trace.events.push_back({EventKind::kMark});
  }
  return file;
}

const std::vector<uint64_t> kWhole = {100, 20, 300, 700, 50}, kPart = {100, 20, 50};

TEST(Sequence, ShowsWhatAnIterationTakesOfIt) {
  const TraceFile file = MarkedSteps({kWhole, kWhole, kPart, kWhole, kPart});
  const std::optional<IterationSequence> sequence = FindSequence(file.trace);
  ASSERT_TRUE(sequence);
  EXPECT_EQ(sequence->entries, 5u);
  EXPECT_EQ(sequence->choices, 1u) << "the entry before the part that is left out";
  EXPECT_EQ(sequence->iterations, 4u);
  ASSERT_EQ(sequence->rows.size(), 4u);
  EXPECT_THAT(sequence->rows[0].positions, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(sequence->rows[0].jumps, 0u);
  EXPECT_THAT(sequence->rows[1].positions, ElementsAre(0, 1, 4));
  EXPECT_EQ(sequence->rows[1].jumps, 1u);
  EXPECT_THAT(SequenceText(*sequence), HasSubstr("sequence of 5 entries has all 4 marked ones"));
  EXPECT_THAT(SequenceText(*sequence), HasSubstr("requests 3 to 5 entries"));
  EXPECT_THAT(SequenceText(*sequence), HasSubstr("leaves the order 0 to 1 time:"));
  EXPECT_THAT(SequenceText(*sequence), HasSubstr("1 entry has several successors"));
}

TEST(Sequence, IsOfIterationsThatDiffer) {
  const std::vector<std::vector<uint64_t>> equal(40, kWhole);
  EXPECT_FALSE(FindSequence(MarkedSteps(equal).trace));
  std::vector<std::vector<uint64_t>> once = equal;
  once[20] = kPart;
  EXPECT_FALSE(FindSequence(MarkedSteps(once).trace)) << "one in 39";
  once[30] = once[31] = kPart;
  EXPECT_TRUE(FindSequence(MarkedSteps(once).trace)) << "three in 39";
  EXPECT_FALSE(FindSequence(MarkedSteps({kPart, kWhole, kPart}).trace)) << "too few";
  TraceFile unmarked = MarkedSteps({kWhole, kPart, kWhole, kPart, kWhole});
  std::erase_if(unmarked.trace.events, [](const Event& event) { return event.kind == EventKind::kMark; });
  EXPECT_FALSE(FindSequence(unmarked.trace));
}

TEST(Sequence, IsBoundedForLongRecordings) {
  std::vector<std::vector<uint64_t>> steps;
  for (int i = 0; i < 100; ++i) steps.push_back(i % 2 == 0 ? kWhole : kPart);
  const std::optional<IterationSequence> sequence = FindSequence(MarkedSteps(steps).trace);
  ASSERT_TRUE(sequence);
  EXPECT_EQ(sequence->rows.size(), IterationSequence::kMostRows);
  EXPECT_THAT(SequenceText(*sequence), HasSubstr("the first 64 of the marked ones"));
  IterationSequence large;
  large.entries = 20'000;
  for (uint64_t k = 0; k < IterationSequence::kMostRows; ++k) {
    large.rows.emplace_back();
    for (uint32_t position = 0; position < large.entries; position += 1 + (position + k) % 3) {
      large.rows.back().positions.push_back(position);
    }
  }
  EXPECT_LT(SequenceSvg(large).size(), 3u << 19);
}

TEST(Sequence, ThePageShowsIt) {
  const TraceFile file = MarkedSteps({kWhole, kWhole, kPart, kWhole, kPart});
  const absl::StatusOr<ReportModel> model = MakeReportModel(file, {});
  ASSERT_TRUE(model.ok()) << model.status();
  PageInput input;
  input.file = &file;
  input.model = &*model;
  const std::string page = Page(input);
  EXPECT_THAT(page, HasSubstr(SequenceText(*model->sequence)));
  EXPECT_THAT(page, HasSubstr("<svg class=\"sequence\""));
  EXPECT_THAT(page, HasSubstr("<path class=\"shade-4\""));
  const TraceFile equal = MarkedSteps(std::vector<std::vector<uint64_t>>(5, kWhole));
  const absl::StatusOr<ReportModel> other = MakeReportModel(equal, {});
  ASSERT_TRUE(other.ok()) << other.status();
  input.file = &equal;
  input.model = &*other;
  EXPECT_THAT(Page(input), Not(HasSubstr("sequence")));
}

}  // namespace
}  // namespace hotpack
