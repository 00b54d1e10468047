// Two independent solvers of integer programs, CBC and HiGHS, solve the exported models of small random instances:
// their optimum is ours, and `hotpack verify` accepts their solution files. Skipped where a solver is not installed.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "packer/csv.h"
#include "tests/packer/random_instance.h"
#include "tests/support/subprocess.h"
#include "tests/tools/highs.h"

namespace hotpack {
namespace {

using hotpack_test::Outcome;
using hotpack_test::PythonWithHighs;
using hotpack_test::RunProgram;
using hotpack_test::Runs;

constexpr int kInstances = 8;

class SolverTest : public ::testing::Test {
 protected:
  std::string Path(int i, const std::string& suffix) const { return folder_.path() + "/" + std::to_string(i) + suffix; }

  // Instances of each kind, and their models, in LP and MPS by turns.
  void ExportAll() {
    std::mt19937_64 random(testing::TestSeed());
    for (int i = 0; i < kInstances; ++i) {
      testing::InstanceShape shape;
      shape.blocks = 5 + i % 5;
      shape.clocks = 12;
      shape.largest = 30;
      if (i % 4 == 1) shape.alignments = 0.5;
      if (i % 4 == 2) shape.carried = shape.gaps = 0.4;
      Instance instance = testing::RandomInstance(shape, &random);
      for (Block& block : instance.blocks) {
        block.size *= 512;
        if (block.alignment > 1) block.alignment *= 512;
      }
      ASSERT_TRUE(WriteTextFile(Path(i, ".csv"), FormatCsv(instance, {}, nullptr)).ok());
      const Outcome outcome = RunProgram(
          {HOTPACK_COMMAND, "export", Path(i, ".csv"), "--format", i % 2 == 0 ? "lp" : "mps", "--out", Model(i)});
      ASSERT_EQ(outcome.code, 0) << outcome.err;
    }
  }

  std::string Model(int i) const { return Path(i, i % 2 == 0 ? ".lp" : ".mps"); }

  // The solver's optimum is valid, and ours where ours is proved; where it is not, ours is no lower.
  void ExpectOptimum(int i, const std::string& solution) {
    const Outcome outcome = RunProgram({HOTPACK_COMMAND, "verify", "--json", Path(i, ".csv"), solution});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto object = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(object["status"], "Optimal") << i;
    EXPECT_EQ(object["unit"].get<int64_t>() % 512, 0);
    EXPECT_LE(object["difference_bytes"], 0)
        << "hotpack is below an optimum: " << hotpack_test::ReadFile(Path(i, ".csv"));
    if (object["our_proven_optimal"]) {
      EXPECT_EQ(object["difference_bytes"], 0);
      ++proven_;
    }
  }

  hotpack_test::TemporaryDirectory folder_;
  int proven_ = 0;
};

TEST_F(SolverTest, CbcFindsTheSameOptima) {
  if (!Runs({"/bin/sh", "-c", "command -v cbc >/dev/null"})) GTEST_SKIP() << "cbc is not installed (coinor-cbc)";
  ExportAll();
  for (int i = 0; i < kInstances; ++i) {
    const Outcome solved = RunProgram(
        {"/bin/sh", "-c", "exec timeout 60 cbc \"$0\" sec 20 solve solution \"$1\"", Model(i), Path(i, ".cbc")});
    ASSERT_EQ(solved.code, 0) << solved.out << solved.err;
    ExpectOptimum(i, Path(i, ".cbc"));
  }
  EXPECT_GT(proven_, kInstances / 2);
}

TEST_F(SolverTest, HighsFindsTheSameOptima) {
  const std::string python = PythonWithHighs();
  if (python.empty()) GTEST_SKIP() << "no python3 with the package highspy";
  ExportAll();
  std::vector<hotpack_test::HighsModel> files;
  const int styles[] = {0, 1, 4};
  for (int i = 0; i < kInstances; ++i) files.push_back({Model(i), Path(i, ".highs"), styles[i % 3]});
  const Outcome solved = hotpack_test::SolveByHighs(python, files);
  ASSERT_EQ(solved.code, 0) << solved.out << solved.err;
  for (int i = 0; i < kInstances; ++i) {
    ExpectOptimum(i, Path(i, ".highs"));
  }
  EXPECT_GT(proven_, kInstances / 2);
}

// In each style: without a feasible placement, and without the time to find one.
TEST_F(SolverTest, HighsWithoutASolution) {
  const std::string python = PythonWithHighs();
  if (python.empty()) GTEST_SKIP() << "no python3 with the package highspy";
  ExportAll();
  const std::string model = hotpack_test::ReadFile(Model(0));
  const size_t rows = model.find("Subject To\n");
  ASSERT_NE(rows, std::string::npos);
  std::string infeasible = model;
  infeasible.insert(rows + 11, " never: x0 <= -1\n");
  ASSERT_TRUE(WriteTextFile(Path(0, ".infeasible.lp"), infeasible).ok());
  std::vector<hotpack_test::HighsModel> files;
  for (const int style : {0, 1, 4}) {
    files.push_back({Path(0, ".infeasible.lp"), Path(style, ".infeasible"), style});
    files.push_back({Model(0), Path(style, ".stopped"), style, /*no_time=*/true});
  }
  const Outcome solved = hotpack_test::SolveByHighs(python, files);
  ASSERT_EQ(solved.code, 0) << solved.out << solved.err;
  for (const hotpack_test::HighsModel& file : files) {
    const Outcome outcome = RunProgram({HOTPACK_COMMAND, "verify", Path(0, ".csv"), file.solution});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.err, "hotpack verify: " + file.solution + ": there is no solution in it, HiGHS says '" +
                               (file.no_time ? "Time limit reached" : "Infeasible") + "'\n");
  }
}

}  // namespace
}  // namespace hotpack
