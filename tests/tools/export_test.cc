// `hotpack export` and `hotpack verify` as people and scripts use them: exit codes, one line for every error, the files
// that they write and those that they do not.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/subprocess.h"
#include "tests/tools/command_folder.h"

namespace {

using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using hotpack_test::RunProgram;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kInstance = "id,lower,upper,size\na,0,3,1536\nb,2,6,1024\nc,4,9,2048\n";

class ExportTest : public hotpack_test::CommandFolder {
 protected:
  static Outcome Hotpack(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), HOTPACK_COMMAND);
    return RunProgram(arguments, {{"LD_PRELOAD", ""}});
  }
  static void ExpectFailure(int code, const std::vector<std::string>& arguments, const std::string& line) {
    const Outcome outcome = Hotpack(arguments);
    EXPECT_EQ(outcome.code, code) << ::testing::PrintToString(arguments);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, line + "\n");
  }
  // A solution as HiGHS writes it.
  std::string Solution(const std::string& name, const std::string& unit_and_big,
                       const std::vector<std::string>& x) const {
    std::string text = "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 1\n# Columns " +
                       std::to_string(x.size() + 1) + "\nu_" + unit_and_big + " 1\n";
    for (size_t i = 0; i < x.size(); ++i)
      text.append("x").append(std::to_string(i)).append(" ").append(x[i]).append("\n");
    return Write(name, text);
  }
};

TEST_F(ExportTest, WritesTheModelToAFileOrToStandardOutput) {
  const std::string file = Write("i.csv", kInstance);
  for (const std::string format : {"lp", "mps"}) {
    const std::string out = Path("model." + format);
    const Outcome outcome = Hotpack({"export", file, "--format", format, "--out", out});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "hotpack export: 3 blocks, 2 binaries, in units of 512 bytes, W = 6, lower bound 6\n");
    EXPECT_THAT(ReadFile(out), HasSubstr(format == "lp" ? "\nEnd\n" : "\nENDATA\n"));
    EXPECT_EQ(Hotpack({"export", file, "--format", format}).out, ReadFile(out));
  }
  const Outcome published = Hotpack({"export", file, "--format", "lp", "--as-published"});
  EXPECT_THAT(published.out, HasSubstr(" 0 <= u_1_17179869184 <= 17179869184\n"));
  EXPECT_THAT(published.err, HasSubstr("lets blocks overlap by 17179 units"));
  EXPECT_THAT(Hotpack({"export", file, "--format", "lp", "--as-published", "--memory", "8K"}).out,
              HasSubstr("u_1_8192"));
}

TEST_F(ExportTest, TakesRecordingsToo) {
  const Outcome outcome = Hotpack({"export", HOTPACK_SOURCE_DIR "/tests/data/lstm.csv", "--format", "lp"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nMinimize\n"));
}

TEST_F(ExportTest, RefusesWithOneLineAndWritesNothing) {
  const std::string file = Write("i.csv", kInstance);
  const std::string empty = Write("empty.csv", "id,lower,upper,size\n");
  const std::string bad = Write("bad.csv", "id,lower,upper,size\na,3,3,8\n");
  const std::string out = Path("out.lp");
  ExpectFailure(2, {"export"}, "hotpack export: FILE is required");
  ExpectFailure(2, {"export", file}, "hotpack export: --format is required");
  ExpectFailure(
      2, {"export", file, "--format", "xml"},
      "hotpack export: --format: 'xml' is none of lp, mps, minimalloc, event-csv, svg, chrome, torch-snapshot");
  ExpectFailure(2, {"export", file, "--format", "lp", "--out", file},
                "hotpack export: --out " + file + " is the input");
  ExpectFailure(2, {"export", file, "--format", "lp", "--memory", "1G"},
                "hotpack export: --memory is W of the model --as-published");
  ExpectFailure(2, {"export", bad, "--format", "lp", "--out", out},
                "hotpack export: " + bad + ":2:5: the block ends before it begins");
  ExpectFailure(2, {"export", empty, "--format", "lp", "--out", out},
                "hotpack export: " + empty + ": there are no blocks to place");
  ExpectFailure(2, {"export", file, "--format", "mps", "--as-published", "--memory", "1K", "--out", out},
                "hotpack export: " + file + ": W = 1024 bytes of memory is less than the lower bound 3072");
  ExpectFailure(2, {"export", file, "--format", "lp", "--out", "/nonexistent/out.lp"},
                "hotpack export: --out /nonexistent/out.lp: No such file or directory");
  ExpectFailure(2, {"export", file, "--format", "lp", "--out", "/dev/full"},
                "hotpack export: /dev/full: cannot be written: No space left on device");
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.path().extension(), ".csv") << "only inputs are left";
  }
  EXPECT_EQ(ReadFile(file), kInstance);
}

TEST_F(ExportTest, TooManyPairsAreCounted) {
  std::string text = "id,lower,upper,size\n";
  for (int i = 0; i < 2002; ++i) text.append(std::to_string(i)).append(",0,9,1\n");
  const std::string file = Write("many.csv", text);
  ExpectFailure(2, {"export", file, "--format", "lp"},
                "hotpack export: " + file +
                    ": 2003001 pairs of residency intervals overlap, more than the 2000000 for which "
                    "a model is written; --all-pairs writes it all the same");
}

TEST_F(ExportTest, VerifyComparesWithItsOwn) {
  const std::string file = Write("i.csv", kInstance);
  const std::string higher = Solution("higher.sol", "512_6", {"3.0000001", "0.9999999", "3"});
  const Outcome equal = Hotpack({"verify", file, Solution("equal.sol", "512_6", {"2", "-1e-9", "2.0000001"})});
  EXPECT_EQ(equal.code, 0) << equal.err;
  EXPECT_EQ(equal.err, "");
  EXPECT_THAT(
      equal.out,
      StartsWith(
          "solution     valid, HiGHS, 'Optimal', in units of 512 bytes, at most 1e-07 of a unit from an integer\n"
          "blocks       3\n"
          "lower bound  3072 (3.0 KiB)\n"
          "height       3072, 1.00000 times that\n"
          "hotpack      3072 by "));
  EXPECT_THAT(equal.out, EndsWith(" (optimal): the solution is as high\n"));
  const Outcome worse = Hotpack({"verify", "--json", file, higher});
  EXPECT_EQ(worse.code, 0) << worse.err;
  const auto object = nlohmann::json::parse(worse.out);
  EXPECT_EQ(object["format"], "HiGHS");
  EXPECT_EQ(object["status"], "Optimal");
  EXPECT_EQ(object["height"], 3584);
  EXPECT_EQ(object["our_height"], 3072);
  EXPECT_EQ(object["our_proven_optimal"], true);
  EXPECT_EQ(object["difference_bytes"], 512);
  EXPECT_NEAR(object["difference_percent"], 100.0 / 6, 1e-9);
  EXPECT_EQ(object["unit"], 512);
  EXPECT_NEAR(object["rounding"], 1e-7, 1e-12);
  EXPECT_THAT(Hotpack({"verify", file, higher}).out,
              HasSubstr("the solution misses it by 512 bytes, 16.66667 %\nnote "));
}

// HiGHS's sparse style, up to 1.15 and from 1.16 on.
TEST_F(ExportTest, VerifyReadsBothSparseForms) {
  const std::string file = Write("i.csv", kInstance);
  const std::string begin = "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 6\n";
  const std::string lines = "u_512_6 6 0\nx0 2 1\nx2 2 3\nz0_1 1 4\n";
  for (const std::string head : {"# Columns -4\n", "Objective_bound 6\nMIP_rel_gap 0\n# Columns -4 sparse\n"}) {
    const Outcome outcome = Hotpack({"verify", file, Write("good.sol", begin + head + lines)});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, StartsWith("solution     valid, HiGHS, 'Optimal', in units of 512 bytes"));
    EXPECT_THAT(outcome.out, HasSubstr("\nheight       3072, "));
    const std::string cut = Write("cut.sol", begin + head + lines.substr(0, lines.find("z0_1")));
    const size_t line = 6 + std::count(head.begin(), head.end(), '\n') + 3;
    ExpectFailure(2, {"verify", file, cut},
                  "hotpack verify: " + cut + ":" + std::to_string(line) + ":7: the file ends within its 4 columns");
  }
}

TEST_F(ExportTest, VerifyReadsPlacements) {
  const std::string file = Write("i.csv", kInstance);
  const std::string placed = Path("placed.csv");
  ASSERT_EQ(Hotpack({"pack", file, "--out", placed}).code, 0);
  const Outcome outcome = Hotpack({"verify", file, placed});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("solution     valid, minimalloc CSV\n"));
}

TEST_F(ExportTest, InvalidSolutionsNameTheTwoBlocks) {
  const std::string file = Write("i.csv", kInstance);
  const std::string wrong = Solution("wrong.sol", "512_6", {"0", "0", "2"});
  ExpectFailure(1, {"verify", file, wrong},
                "hotpack verify: " + wrong +
                    ": not valid: block 0 and block 1 overlap at clock 2: [0, 1536) and [0, 1024) "
                    "(a and b)");
  // In bytes with W = 16 GiB: the rows and the numbers differ by z's tolerance.
  const std::string false_one = Solution("false.sol", "1_17179869184", {"1000", "0", "1024"});
  ExpectFailure(
      1, {"verify", file, false_one},
      "hotpack verify: " + false_one +
          ": not valid: block 0 and block 1 overlap at clock 2: [1000, 2536) and "
          "[0, 1024) (a and b); 24 bytes, which an integrality tolerance of 1e-6 allows with W = 17179869184: a "
          "false solution of the solver, not of the model");
  const std::string csv = Write("p.csv", "id,lower,upper,size,offset\na,0,3,1536,0\nb,2,6,1024,512\nc,4,9,2048,1536\n");
  EXPECT_THAT(Hotpack({"verify", file, csv}).err, HasSubstr("block 0 and block 1 overlap"));
}

TEST_F(ExportTest, WhatIsNoSolutionIsToldApart) {
  const std::string file = Write("i.csv", kInstance);
  const std::string infeasible = Write("inf.sol", "Infeasible - objective value 12.00000000\n 0 u_512_6 12 0\n");
  ExpectFailure(1, {"verify", file, infeasible},
                "hotpack verify: " + infeasible + ": there is no solution in it, CBC says 'Infeasible'");
  const std::string other = Solution("other.sol", "1024_6", {"0", "0", "2"});
  ExpectFailure(2, {"verify", file, other},
                "hotpack verify: " + other +
                    ": in units of 1024 bytes, but the instance's are 512: a solution of another instance");
  const std::string text = Write("text.sol", "nothing of that kind\n");
  ExpectFailure(2, {"verify", file, text},
                "hotpack verify: " + text + ":1:1: neither a solution of CBC or HiGHS nor a minimalloc CSV");
  ExpectFailure(2, {"verify", file, Path("missing.sol")},
                "hotpack verify: " + Path("missing.sol") + ": No such file or directory");
  ExpectFailure(2, {"verify", file}, "hotpack verify: SOLUTION is required");
}

}  // namespace
