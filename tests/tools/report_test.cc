// Recordings in the report: columns, iterations, notes, curves, files.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "packer/bounds.h"
#include "packer/validator.h"
#include "tests/tools/report_sample.h"
#include "tests/tools/sharded_recording.h"
#include "tools/cli/file_sink.h"
#include "tools/report/columns.h"
#include "tools/report/page.h"
#include "tools/report/write_report.h"

namespace hotpack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

ReportModel ReportModelOf(const TraceFile& file) {
  absl::StatusOr<ReportModel> model = MakeReportModel(file, {});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : ReportModel{};
}

std::vector<uint64_t> Read(const Json& column) {
  absl::StatusOr<std::vector<uint64_t>> values = ReadColumn(column);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *values : std::vector<uint64_t>();
}

// A recording of equal steps with these sizes in order. Each block is released at the next request but `life`.
TraceFile Steps(const std::vector<std::vector<uint64_t>>& steps, size_t life) {
  TraceFile file;
  std::vector<std::pair<uint64_t, uint64_t>> live;
  uint64_t id = 0;
  for (const auto& sizes : steps) {
    for (uint64_t bytes : sizes) {
      file.trace.events.push_back({EventKind::kAllocate, 0, 0, 0, id, bytes, 0});
      live.emplace_back(id++, bytes);
      if (live.size() <= life) continue;
      file.trace.events.push_back({EventKind::kRelease, 0, 0, 0, live.front().first, live.front().second, 0});
      live.erase(live.begin());
    }
  }
  return file;
}

TEST(ColumnsTest, ComeBackInTheNarrowestType) {
  const std::pair<const char*, std::vector<uint64_t>> columns[] = {{"same", {}},
                                                                   {"same", {7}},
                                                                   {"same", {9, 9, 9}},
                                                                   {"steps", {3, 5, 7, 9}},
                                                                   {"u8", {0, 255, 3}},
                                                                   {"u16", {256, 0, 65535}},
                                                                   {"u32", {65536, 0, 4294967295}},
                                                                   {"f64", {4294967296, 1, uint64_t{1} << 53}},
                                                                   {"u8", {5, 4, 3}},
                                                                   {"u16", {256, 3, 0}},
                                                                   {"u32", {65536, 3, 1}},
                                                                   {"f64", {uint64_t{1} << 32, 3, 3}}};
  for (const auto& [type, values] : columns) {
    const Json column = Column(values);
    EXPECT_EQ(column["type"], type) << ::testing::PrintToString(values);
    EXPECT_EQ(column["count"], values.size());
    EXPECT_EQ(Read(Json::parse(column.dump())), values);
  }
  EXPECT_EQ(Base64("\x01\xff"), "Af8=");
  EXPECT_FALSE(ReadColumn(Json{{"type", "u32"}, {"count", 2}, {"data", "AAAA"}}).ok());
  EXPECT_FALSE(ReadColumn(Json{{"type", "i7"}, {"count", 2}}).ok());
}

TEST(ReportTest, WaitsBetweenStreamsAreAvoidedAndCounted) {
  TraceFile file;
  file.trace = hotpack_test::ShardedSteps(6, 8, kEventAsync);
  const ReportModel model = ReportModelOf(file);
  ASSERT_TRUE(model.stream_edges);
  EXPECT_LT(model.stream_edges->after, model.stream_edges->before);
  EXPECT_EQ(Validate(model.instance, model.packed.placement), "");
  const absl::StatusOr<ReportModel> ignoring = MakeReportModel(file, {.avoid_stream_edges = false});
  ASSERT_TRUE(ignoring.ok()) << ignoring.status();
  EXPECT_EQ(ignoring->stream_edges->before, model.stream_edges->before);
  EXPECT_EQ(ignoring->stream_edges->after, model.stream_edges->before);
  EXPECT_EQ(ignoring->packed.placement.height, model.packed.placement.height);
  PageInput input;
  input.file = &file;
  input.model = &model;
  const std::string page = Page(input);
  EXPECT_THAT(page, HasSubstr(absl::StrCat("\"stream_edges\":", model.stream_edges->after)));
  file.trace = hotpack_test::ShardedSteps(6, 8, 0);
  for (Event& event : file.trace.events) event.stream = 0;
  EXPECT_FALSE(ReportModelOf(file).stream_edges);
}

TEST(ReportTest, TheRunIsCutWhereTheHotIterationOccurs) {
  const std::vector<uint64_t> step = {1024, 2048, 4096, 1536}, other = {1024, 2048, 8192, 4096, 1536};
  const TraceFile file = Steps({{4096, 1536}, step, step, other, step, step, {1024, 2048}}, 1);
  Profile hot;
  hot.period = 4;
  for (uint64_t bytes : step) hot.blocks.push_back({UnitsOf(bytes), 2, 2, true});
  hot.blocks[1].age = 1;  // every block lives until two requests have been made: this one for longer than planned
  const std::vector<RunIteration> run = CutRun(file.trace, CollectRequests(file.trace), hot);
  std::vector<IterationState> states;
  std::vector<uint64_t> requests, longer;
  for (const RunIteration& iteration : run) {
    states.push_back(iteration.state);
    requests.push_back(iteration.requests);
    longer.push_back(iteration.longer_lives);
  }
  using enum IterationState;
  EXPECT_THAT(states, ElementsAre(kPart, kEqual, kEqual, kDiffers, kEqual, kEqual, kPart));
  EXPECT_THAT(requests, ElementsAre(2, 4, 4, 5, 4, 4, 2));
  EXPECT_THAT(longer, ElementsAre(0, 1, 1, 0, 1, 1, 0));
  EXPECT_EQ(run[1].live_peak, 4096u + 2048u);
  EXPECT_EQ(run[3].live_peak, 8192u + 4096u);
  EXPECT_EQ(run[0].first_event, 0u);
  for (size_t k = 1; k < run.size(); ++k) EXPECT_EQ(run[k].first_event, run[k - 1].end_event);
  EXPECT_EQ(run.back().end_event, file.trace.events.size());
}

TEST(ReportTest, WhatDiffersIsCutAtMarks) {
  TraceFile file;
  uint64_t id = 0;
  auto step = [&](std::initializer_list<uint64_t> sizes) {
    file.trace.events.push_back({EventKind::kMark});
    for (uint64_t bytes : sizes) {
      file.trace.events.push_back({EventKind::kAllocate, 0, 0, 0, id, bytes, 0});
      file.trace.events.push_back({EventKind::kRelease, 0, 0, 0, id++, bytes, 0});
    }
  };
  step({512, 1024});
  step({2048, 4096, 8192});
  step({1024, 512, 512});
  step({1024, 512, 512});
  step({4096});
  step({2048});
  Profile hot;
  hot.period = 3;
  for (uint64_t bytes : {1024, 512, 512}) hot.blocks.push_back({UnitsOf(bytes), 1, 1, true});
  std::vector<std::pair<uint64_t, IterationState>> run;
  for (const RunIteration& iteration : CutRun(file.trace, CollectRequests(file.trace), hot))
    run.emplace_back(iteration.requests, iteration.state);
  using enum IterationState;
  EXPECT_THAT(run, ElementsAre(testing::Pair(2, kDiffers), testing::Pair(3, kDiffers), testing::Pair(3, kEqual),
                               testing::Pair(3, kEqual), testing::Pair(1, kDiffers), testing::Pair(1, kDiffers)));
}

TEST(ReportTest, OccurrencesDoNotOverlap) {
  const TraceFile file = Steps({{512, 1024, 512, 1024, 512, 512, 1024, 512}}, 0);
  Profile hot;
  hot.period = 3;
  for (uint64_t bytes : {512, 1024, 512}) hot.blocks.push_back({UnitsOf(bytes), 1, 1, true});
  std::vector<uint64_t> requests;
  for (const RunIteration& iteration : CutRun(file.trace, CollectRequests(file.trace), hot)) {
    requests.push_back(iteration.requests * (iteration.state == IterationState::kEqual ? 10 : 1));
  }
  EXPECT_THAT(requests, ElementsAre(30, 2, 30)) << "the two between them are not a third one's";
}

TEST(ReportTest, NotesComeFromTheIterationThatHasMost) {
  const TraceFile file = hotpack_test::Sample();
  const ReportModel model = ReportModelOf(file);
  ASSERT_EQ(model.blocks.size(), 8u);
  EXPECT_EQ(model.period, 8u);
  EXPECT_EQ(model.unplanned.blocks, 3u);
  EXPECT_EQ(model.unplanned.most, 3 << 20);
  auto name = [&](NameOrdinal ordinal) { return ordinal == kNoName ? std::string("-") : model.names[ordinal]; };
  std::map<std::string, int> ranges;
  for (size_t i = 0; i < model.blocks.size(); ++i) {
    const ReportBlock& block = model.blocks[i];
    ++ranges[name(block.notes.range)];
    const Bytes size = model.instance.blocks[i].size;
    if (size == 4 << 20) {
      EXPECT_EQ(name(block.notes.first_kernel), "k_forward");
      EXPECT_EQ(name(block.notes.last_kernel), "k_backward<float>");
      EXPECT_EQ(block.notes.launches, 2u);
      EXPECT_THAT(name(block.notes.stack), HasSubstr("train.py:7"));
      EXPECT_EQ(block.thread, 0);
    }
    if (size < 1 << 20) {
      EXPECT_EQ(name(block.notes.first_kernel), "k_backward<float>");
      EXPECT_EQ(block.asked, 700'000);
      EXPECT_EQ(size, 700'416);
      EXPECT_EQ(block.stream, 2u);
      EXPECT_EQ(block.thread, 1);
    }
  }
  // The backward thread has no range of its own open: that of the thread that opened one.
  EXPECT_THAT(ranges, ElementsAre(testing::Pair("step / backward", 4), testing::Pair("step / forward", 4)));
}

TEST(ReportTest, CurvesAreLoadAndTop) {
  const ReportModel model = ReportModelOf(hotpack_test::Sample());
  EXPECT_EQ(Validate(model.instance, model.packed.placement), "");
  const PlacementCurves& curves = model.curves;
  Bytes most = 0, top = 0;
  for (size_t i = 0; i < curves.at.size(); ++i) {
    Bytes load = 0, high = 0;
    for (size_t b = 0; b < model.instance.blocks.size(); ++b) {
      for (const Residency& residency : model.instance.blocks[b].residency) {
        if (residency.begin > curves.at[i] || residency.end <= curves.at[i]) continue;
        load += model.instance.blocks[b].size;
        high = std::max(high, model.packed.placement.offsets[b] + model.instance.blocks[b].size);
      }
    }
    EXPECT_EQ(curves.load[i], load) << i;
    EXPECT_EQ(curves.top[i], high) << i;
    most = std::max(most, load);
    top = std::max(top, high);
  }
  EXPECT_EQ(most, MaxLoad(model.instance));
  EXPECT_EQ(top, model.packed.placement.height);
}

TEST(ReportTest, WhatDoesNotRepeatIsPackedWhole) {
  const TraceFile file = Steps({{1024, 4096, 512, 9000}}, 2);
  const ReportModel model = ReportModelOf(file);
  EXPECT_EQ(model.period, 0u);
  EXPECT_THAT(model.what, HasSubstr("no iteration repeats"));
  ASSERT_EQ(model.blocks.size(), 4u);
  EXPECT_EQ(model.blocks[0].kind, BlockKind::kPacked);
  EXPECT_EQ(model.blocks[3].kind, BlockKind::kKept);
  EXPECT_EQ(model.blocks[3].asked, 9000);
  EXPECT_TRUE(model.iterations.empty());
  TraceFile none;
  none.trace.events.push_back({EventKind::kMark});
  EXPECT_FALSE(MakeReportModel(none, {}).ok());
}

TEST(ReportTest, APlanIsNeverAStackOfAllBlocks) {
  Instance instance;
  for (int i = 0; i < 5000; ++i) {
    Block block;
    block.size = 512;
    block.residency.push_back({i, i + 2});
    instance.blocks.push_back(block);
  }
  const absl::StatusOr<ReportModel> model = MakeReportModel(instance, {}, {.time_limit_ns = 1});
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(Validate(model->instance, model->packed.placement), "");
  EXPECT_LE(model->packed.placement.height, 3 * 512);
}

TEST(ReportTest, APlanFileIsRefusedAsOne) {
  const std::string path = ::testing::TempDir() + "/report_test.plan";
  ASSERT_TRUE(WriteFile(path, absl::string_view("\x89hotplan\x01\0\0\0", 12)).ok());
  EXPECT_THAT(ReadReportModel(path, {}).status().message(), HasSubstr("a plan file has no recording in it"));
}

PageInput InputOf(const TraceFile& file, const ReportModel& model) {
  PageInput input;
  input.name = "sample.trace";
  input.file = &file;
  input.model = &model;
  return input;
}

TEST(ReportTest, ThePageHoldsEveryBlockExactly) {
  const TraceFile file = hotpack_test::Sample();
  const ReportModel model = ReportModelOf(file);
  const Json data = PageData(InputOf(file, model));
  const uint64_t unit = data["unit"];
  const auto index = Read(data["blocks"]["index"]), begin = Read(data["blocks"]["begin"]),
             end = Read(data["blocks"]["end"]);
  const auto offset = Read(data["blocks"]["offset"]), size = Read(data["blocks"]["size"]),
             range = Read(data["blocks"]["range"]);
  ASSERT_EQ(index.size(), model.blocks.size());
  for (size_t k = 0; k < index.size(); ++k) {
    const auto i = static_cast<size_t>(index[k]);
    EXPECT_EQ(begin[k], static_cast<uint64_t>(model.instance.blocks[i].residency[0].begin));
    EXPECT_EQ(end[k], static_cast<uint64_t>(model.instance.blocks[i].residency[0].end));
    EXPECT_EQ(offset[k] * unit, static_cast<uint64_t>(model.packed.placement.offsets[i]));
    EXPECT_EQ(size[k] * unit, static_cast<uint64_t>(model.instance.blocks[i].size));
    EXPECT_EQ(data["names"][range[k] - 1], model.names[model.blocks[i].notes.range]);
  }
  EXPECT_TRUE(std::is_sorted(begin.begin(), begin.end()));
  EXPECT_EQ(Read(data["run"]["most"]).size(), file.trace.events.size());
  EXPECT_EQ(Read(data["iterations"]["state"]).size(), model.iterations.size());
}

// Weights of 3 MiB that no plan holds, and the step's blocks where most of them are live.
TEST(ReportTest, WhatIsLiveAtThePeakByKind) {
  const TraceFile file = hotpack_test::Sample();
  const ReportModel model = ReportModelOf(file);
  const Json figures = PageData(InputOf(file, model))["figures"];
  const auto kinds = figures["peak_by_kind"].get<std::vector<uint64_t>>();
  ASSERT_EQ(kinds.size(), 4u);
  EXPECT_EQ(kinds[0], (10u << 20) + 700'416) << "all activations and the first gradient";
  EXPECT_EQ(kinds[1] + kinds[2], 0u);
  EXPECT_EQ(kinds[3], 3u << 20);
  EXPECT_EQ(kinds[0] + kinds[3], figures["live_peak"]);
}

// The most of both curves together, which need not be the most of either.
TEST(ReportTest, TheMomentOfThePeak) {
  PlacementCurves curves;
  curves.at = {0, 4, 8};
  curves.load = {10, 6, 7};
  curves.end = 12;
  EXPECT_EQ(PeakMoment(curves, {}).at, 0);
  EXPECT_EQ(PeakMoment(curves, {}).load, 10);
  UnplannedLoad unplanned;
  unplanned.at = {0, 6, 7};
  unplanned.bytes = {1, 20, 2};
  const LiveMoment peak = PeakMoment(curves, unplanned);
  EXPECT_EQ(peak.at, 6);
  EXPECT_EQ(peak.load, 6);
  EXPECT_EQ(peak.unplanned, 20);
  EXPECT_EQ(LivePeak(curves, unplanned), 26);
}

TEST(ReportTest, TheLargestBlocksStayWhenThereAreTooMany) {
  const TraceFile file = hotpack_test::Sample();
  const ReportModel model = ReportModelOf(file);
  PageInput input = InputOf(file, model);
  input.block_limit = 2;
  const Json data = PageData(input);
  EXPECT_EQ(data["figures"]["blocks"], 8);
  EXPECT_EQ(data["figures"]["shown"], 2);
  auto sizes = Read(data["blocks"]["size"]);
  std::sort(sizes.begin(), sizes.end());
  EXPECT_EQ(sizes.back() * data["unit"].get<uint64_t>(), uint64_t{4} << 20);
  EXPECT_THAT(Page(input), HasSubstr("There are 8 blocks; the 2 with the largest area"));
}

TEST(ReportTest, ThePageSaysWhatIsMissingAndRoundsNothingUpToAll) {
  TraceFile file = hotpack_test::Sample();
  file.origin.end = TraceOrigin::End::kNotClosed;
  const ReportModel model = ReportModelOf(file);
  PageInput input = InputOf(file, model);
  input.stats = {{"requests", 100'000}, {"planned", 99'999}};
  const std::string page = Page(input);
  EXPECT_THAT(page, HasSubstr("The program ended without closing the recording"));
  EXPECT_THAT(page, HasSubstr(">&gt; 99.9 %<"));
  input.stats["planned"] = 100'000;
  EXPECT_THAT(Page(input), HasSubstr(">100 %<"));
}

TEST(ReportTest, ThePageNeedsNothingElseAndRunsNothingOfTheRecording) {
  const TraceFile file = hotpack_test::Sample();
  const ReportModel model = ReportModelOf(file);
  PageInput input = InputOf(file, model);
  input.command = "hotpack run -- 'a<b'";
  std::string page = Page(input);
  EXPECT_THAT(page, HasSubstr("<title>train &lt;b&gt;&amp;co · hotpack report</title>"));
  EXPECT_THAT(page, HasSubstr("a&lt;b"));
  EXPECT_THAT(page, Not(HasSubstr("</script><b>evil")));
  EXPECT_THAT(page, HasSubstr("\\u003c/script>\\u003cb>evil"));
  EXPECT_THAT(page, Not(HasSubstr("@DATA@")));
  for (size_t at = 0; (at = page.find("http", at)) != std::string::npos; ++at) {
    const std::string word = page.substr(at, 40);
    EXPECT_TRUE(word.rfind("http://www.w3.org/2000/svg", 0) == 0 || word.rfind("http-equiv", 0) == 0) << word;
  }
  EXPECT_THAT(page, Not(HasSubstr(" src=")));
}

}  // namespace
}  // namespace hotpack
