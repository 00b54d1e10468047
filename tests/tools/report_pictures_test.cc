// Recordings as pictures: the SVG, and the trace for Chrome and Perfetto.
#include <algorithm>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/tools/report_sample.h"
#include "tools/report/chrome.h"
#include "tools/report/report_model.h"
#include "tools/report/svg.h"

namespace hotpack {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

ReportModel ReportModelOf(const TraceFile& file) {
  absl::StatusOr<ReportModel> model = MakeReportModel(file, {});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : ReportModel{};
}

// Every element that is opened is closed, in order, and no character stands where XML has none.
std::string XmlFault(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = 0; at < xml.size();) {
    if (xml[at] != '<') {
      if (xml[at] == '&' && xml.find(';', at) > at + 6) return "an ampersand at " + std::to_string(at);
      ++at;
      continue;
    }
    const size_t end = xml.find('>', at);
    if (end == std::string::npos) return "no end of a tag";
    const std::string tag = xml.substr(at + 1, end - at - 1);
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0 || tag.find('<') != std::string::npos) return "tag " + tag;
    const std::string name = tag.substr(0, tag.find_first_of(" /\n", 1));
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != name) return "unexpected " + tag;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end + 1;
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

// Rectangles in the paths of one class.
size_t Rectangles(const std::string& svg, const std::string& name) {
  size_t count = 0;
  const std::string head = "class=\"" + name + "\"";
  for (size_t at = 0; (at = svg.find(head, at)) != std::string::npos; at += head.size()) {
    const size_t begin = svg.find(" d=\"", at) + 4;
    count += Count(svg.substr(begin, svg.find('"', begin) - begin), "z");
  }
  return count;
}

TEST(SvgTest, OneRectangleABlockAndValidXml) {
  const ReportModel model = ReportModelOf(hotpack_test::Sample());
  const std::string svg = Svg(model, {});
  EXPECT_EQ(XmlFault(svg), "");
  EXPECT_EQ(Rectangles(svg, "blocks"), 8u);
  EXPECT_EQ(Rectangles(svg, "merged"), 0u);
  EXPECT_THAT(svg, HasSubstr(">8 blocks, the marked iteration with the highest live load, 8 requests: plan "));
  EXPECT_THAT(svg, HasSubstr(">lower bound "));
}

TEST(SvgTest, TinyBlocksAreMergedAndABlockAloneIsDrawn) {
  // 50,000 blocks that lie side by side, in a picture of 744 by 360 pixels.
  Instance many;
  for (int i = 0; i < 50'000; ++i) {
    Block block;
    block.size = 512;
    block.residency.push_back({i / 50, i / 50 + 1});
    many.blocks.push_back(block);
  }
  many.blocks[0].size = 512 * 2000;
  const absl::StatusOr<ReportModel> model = MakeReportModel(many, {}, {});
  ASSERT_TRUE(model.ok());
  const std::string svg = Svg(*model, {});
  EXPECT_EQ(XmlFault(svg), "");
  EXPECT_LT(svg.size(), 300'000u);
  EXPECT_GT(Rectangles(svg, "merged"), 0u);
  Instance one;
  one.blocks.push_back(many.blocks[0]);
  const absl::StatusOr<ReportModel> alone = MakeReportModel(one, {}, {});
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(Rectangles(Svg(*alone, {}), "blocks"), 1u);
}

TEST(ChromeTest, SlicesBeginAndEndAndTheCounterIsTheLiveMemory) {
  const TraceFile file = hotpack_test::Sample();
  std::string text;
  ChromeCounts counts;
  ASSERT_TRUE(WriteChromeTrace(
                  file,
                  [&](absl::string_view piece) {
                    text.append(piece.data(), piece.size());
                    return absl::OkStatus();
                  },
                  &counts)
                  .ok());
  const Json trace = Json::parse(text);
  std::map<uint64_t, int> open;
  std::map<std::string, int> phases;
  uint64_t peak = 0, last_counter = 0;
  int depth = 0;
  for (const Json& event : trace["traceEvents"]) {
    const std::string phase = event["ph"];
    ++phases[phase];
    if (phase == "b") ++open[event["id"]];
    if (phase == "e") --open[event["id"]];
    if (phase == "C") peak = std::max(peak, last_counter = event["args"]["bytes"]);
    if (phase == "B") ++depth;
    if (phase == "E") --depth;
    EXPECT_GE(depth, 0);
    if (phase == "X") {
      EXPECT_DOUBLE_EQ(event["dur"], 0.5);
    }
  }
  EXPECT_EQ(open.size(), 35u);  // 3 weights, 4 times 8
  for (const auto& [id, left] : open) EXPECT_EQ(left, 0) << id;
  EXPECT_EQ(phases["b"], 35);
  EXPECT_EQ(phases["X"], 5);
  EXPECT_EQ(phases["B"], 3);
  EXPECT_EQ(phases["E"], 3);
  EXPECT_EQ(phases["i"], 5);
  EXPECT_EQ(depth, 0);
  EXPECT_EQ(last_counter, 3u << 20);
  EXPECT_EQ(peak, (3u << 20) + (10u << 20) + 700'416u);
  EXPECT_EQ(counts.blocks, 35u);
  EXPECT_EQ(counts.ranges, 3u);
  EXPECT_TRUE(counts.times);
}

TEST(ChromeTest, BlocksThatAreKeptEndInOrder) {
  TraceFile file;
  for (uint64_t id = 0; id < 100; ++id) file.trace.events.push_back({EventKind::kAllocate, 0, 0, 0, id, 512, 0});
  std::string text;
  ChromeCounts counts;
  ASSERT_TRUE(WriteChromeTrace(
                  file,
                  [&](absl::string_view piece) {
                    text.append(piece.data(), piece.size());
                    return absl::OkStatus();
                  },
                  &counts)
                  .ok());
  const Json trace = Json::parse(text);
  std::vector<uint64_t> ended;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "e") ended.push_back(event["id"]);
  }
  EXPECT_EQ(ended.size(), 100u);
  EXPECT_TRUE(std::is_sorted(ended.begin(), ended.end()));
}

}  // namespace
}  // namespace hotpack
