// A budget on the page, and what a program adds to its figures.
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/subprocess.h"
#include "tools/report/budget_section.h"
#include "tools/run/program_sections.h"

namespace hotpack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

// As files have them, whose numbers have no sign.
Json Parsed(const Json& json) { return Json::parse(json.dump()); }

Json Stats() {
  return Parsed({{"reserved_peak", 3 << 20},
                 {"budget",
                  {{"budget", 4 << 20},
                   {"predicted_peak", 3 << 20},
                   {"predicted_time", 1.04},
                   {"measured_time", 1.0625},
                   {"iterations", 7}}}});
}

Json Report() {
  return Parsed({{"of", "the step"},
                 {"before", {1 << 20, 8 << 20, 2 << 20}},
                 {"after", {1 << 20, 3 << 20, 2 << 20}},
                 {"turns", {0.5}},
                 {"modules",
                  {{{"module", "h.*.mlp<&>"},
                    {"saves", 12},
                    {"kept", 1 << 20},
                    {"moved", 5 << 20},
                    {"recomputed", 0},
                    {"seconds", 0.0015}},
                   {{"module", "h.*.act"}, {"saves", 3}, {"kept", 0}, {"moved", 0}, {"recomputed", 2 << 20}}}},
                 {"update", {{"before", 9 << 20}, {"after", 1 << 20}}},
                 {"state", {{"kept", 1 << 20}, {"moved", 7 << 20}}}});
}

TEST(ReportBudgetTest, SaysAndDrawsWhatTheBudgetDid) {
  const std::string section = BudgetSection(Stats(), Report());
  EXPECT_THAT(section, HasSubstr("The budget is 4.0 MiB. With everything kept, the step would take 9.0 MiB; by the "
                                 "plan 3.0 MiB. The whole run held at most 3.0 MiB. In a step 12.0 MiB move to the "
                                 "host and back, and 2.0 MiB are computed again. Its time over that of a plain step: "
                                 "1.04 (predicted), 1.06 (measured)."));
  EXPECT_THAT(section, HasSubstr("role=\"img\""));  // with words for those who do not see it
  EXPECT_THAT(section, HasSubstr("<title>The load of the step: at most 9.0 MiB with everything kept, 3.0 MiB by the "
                                 "plan; the budget is 4.0 MiB</title>"));
  EXPECT_THAT(section, HasSubstr("<path class=\"before\""));
  EXPECT_THAT(section, HasSubstr("<path class=\"after\""));
  EXPECT_THAT(section, HasSubstr("budget 4.0 MiB</text>"));
  EXPECT_THAT(section, HasSubstr("<tr><td class=\"word\">h.*.mlp&lt;&amp;&gt;</td><td>12</td><td>1.0 MiB</td><td>5.0 "
                                 "MiB</td><td>–</td><td>1.50 ms</td></tr>"));
  EXPECT_THAT(section, HasSubstr("optimizer state"));
  EXPECT_THAT(section, HasSubstr("in all</td><td>15</td><td>2.0 MiB</td><td>12.0 MiB</td><td>2.0 MiB</td><td>1.50 ms"));
}

TEST(ReportBudgetTest, SaysNothingThatIsNotKnown) {
  Json stats = Stats(), report = Report();
  stats["budget"].erase("predicted_time");
  stats["budget"]["measured_time"] = 0.0;
  report.erase("update");
  report.erase("state");
  report["modules"][0].erase("seconds");
  const std::string section = BudgetSection(stats, report);
  EXPECT_THAT(section, HasSubstr("would take 8.0 MiB"));
  for (const char* absent : {"plain step", ">time<", "optimizer"}) EXPECT_THAT(section, Not(HasSubstr(absent)));
}

TEST(ReportBudgetTest, NothingWithoutABudgetOrOfOtherData) {
  EXPECT_EQ(BudgetSection(Json(), Json()), "");
  EXPECT_EQ(BudgetSection(Json{{"requests", 3}}, Report()), "");
  EXPECT_EQ(BudgetSection(Stats(), Json()), "");
  const Json strange[] = {
      -1, 1.5, "x", nullptr, Json::array(), Json::object(), Json::array({-1}), Json::array({"x"}), uint64_t{1} << 60};
  for (const char* name : {"before", "after", "turns", "modules"}) {
    for (const Json& value : strange) {
      if (value == Json::array() && (std::string(name) == "turns" || std::string(name) == "modules")) continue;
      Json report = Report();
      report[name] = value;
      EXPECT_EQ(BudgetSection(Stats(), report), "") << name << " " << value;
    }
    Json report = Report();
    report.erase(name);
    EXPECT_EQ(BudgetSection(Stats(), report), "") << name;
  }
  for (const char* name : {"saves", "kept", "moved", "recomputed", "module"}) {
    Json report = Report();
    report["modules"][1][name] = -5;
    EXPECT_EQ(BudgetSection(Stats(), report), "") << name;
  }
  for (const char* name : {"update", "state"}) {
    Json report = Report();
    report[name] = 3;
    EXPECT_EQ(BudgetSection(Stats(), report), "") << name;
  }
  Json report = Report();
  report["modules"] = Json(Json::array_t(1000, report["modules"][0]));  // a page does not grow with the model
  EXPECT_EQ(BudgetSection(Stats(), report), "");
}

TEST(ReportBudgetTest, SectionsOfAProgram) {
  const hotpack_test::TemporaryDirectory directory;
  const auto write = [&](int pid, const std::string& text) {
    std::ofstream(directory.path() + "/sections." + std::to_string(pid)) << text;
  };
  write(1, "no JSON");
  write(2, "[3]");
  write(3, R"({"a": {"figures": {"x": 1, "y": 1.5, "z": "text"}, "report": {"curve": [1]}}, "b": 7,)"
           R"("c": {"figures": 1}})");
  std::vector<ProcessStats> processes(4);
  for (int pid = 0; pid < 4; ++pid) processes[static_cast<size_t>(pid)].pid = pid;  // 0 has no file
  const ProgramSections sections = ReadSections(directory.path(), processes);
  EXPECT_EQ(sections.figures, (Json{{"a", {{"x", 1}, {"y", 1.5}}}}));
  EXPECT_EQ(sections.report, (Json{{"a", {{"curve", {1}}}}}));
  processes.pop_back();
  EXPECT_TRUE(ReadSections(directory.path(), processes).figures.empty());
  write(2, std::string(5 << 20, ' ') + R"({"a": {"figures": {"x": 1}}})");
  EXPECT_TRUE(ReadSections(directory.path(), processes).figures.empty());
}

}  // namespace
}  // namespace hotpack
