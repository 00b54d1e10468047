#include "packer/solution_file.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hotpack {
namespace {

using ::testing::ElementsAre;

const std::string kCbc =
    "Optimal - objective value 7.00000000\n"
    "      0 u_512_9                7                       1\n"
    "      2 x1          2.9999999                       0\n"
    "**    4 z0_1      9.5367432e-07                       0\n";
const std::string kHighs =
    "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 7\n# Columns 4\n"
    "u_512_9 7\nx0 -1e-9\nx1 3.0000001\nz0_1 0\n# Rows 1\nt0 7\n\n# Dual solution values\nNone\n";
const std::string kHighsSparse =
    "Model status\nTime limit reached\n\n# Primal solution values\nFeasible\nObjective 7\n# Columns -2\n"
    "u_512_9 7 0\nx1 3 2\n";
// From 1.16 on, raw and sparse.
const std::string kHighs116 =
    "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 7\nObjective_bound 7\nMIP_rel_gap 0\n"
    "# Columns 4\nu_512_9 7\nx0 -0\nx1 3\nz0_1 0\n# Rows 1\nt0 7\n\n# Dual solution values\nNone\n";
const std::string kHighs116Sparse =
    "Model status\nTime limit reached\n\n# Primal solution values\nFeasible\nObjective 7\nObjective_bound 3\n"
    "MIP_rel_gap 0.571428571429\n# Columns -2 sparse\nu_512_9 7 0\nx1 3 2\n";
const std::string kHighsPretty =
    "Columns\n"
    "    Index Status        Lower        Upper       Primal         Dual  Type        Name\n"
    "        0                   0            9            7               Integer     u_512_9\n"
    "        1                   0          inf            0               Integer     x0\n"
    "        2                   3            3            3               Continuous  x1\n"
    "Rows\n"
    "    Index Status        Lower        Upper       Primal         Dual  Name\n"
    "        0                   3          inf            7               t0\n\n"
    "Model status: Optimal\n\nObjective value: 7\n";

Instance TwoBlocks() {
  Instance instance;
  instance.blocks = {{.size = 1536, .residency = {{0, 4}}}, {.size = 2048, .residency = {{2, 5}}}};
  return instance;
}

TEST(SolutionFileTest, FormatsAreToldApart) {
  EXPECT_EQ(RecogniseSolution(kCbc), SolutionFormat::kCbc);
  EXPECT_EQ(RecogniseSolution(kHighs), SolutionFormat::kHighs);
  EXPECT_EQ(RecogniseSolution(kHighsPretty), SolutionFormat::kHighsPretty);
  EXPECT_EQ(RecogniseSolution("id,lower,upper,size,offset\r\n"), SolutionFormat::kPlacementCsv);
  EXPECT_EQ(RecogniseSolution(""), SolutionFormat::kOther);
  EXPECT_EQ(RecogniseSolution("solution"), SolutionFormat::kOther);
}

TEST(SolutionFileTest, EveryFormatGivesTheSamePlacement) {
  for (const std::string& text : {kCbc, kHighs, kHighsSparse, kHighs116, kHighs116Sparse, kHighsPretty}) {
    absl::StatusOr<SolverSolution> solution = ParseSolverSolution(text, "s", 2);
    ASSERT_TRUE(solution.ok()) << solution.status();
    EXPECT_TRUE(solution->has_solution);
    EXPECT_EQ(solution->optimal, text != kHighsSparse && text != kHighs116Sparse) << solution->status;
    EXPECT_EQ(solution->unit, 512);
    EXPECT_EQ(solution->big, 9);
    EXPECT_EQ(solution->height, 7);
    absl::StatusOr<RoundedSolution> rounded = RoundSolution(*solution, TwoBlocks());
    ASSERT_TRUE(rounded.ok());
    EXPECT_THAT(rounded->placement.offsets, ElementsAre(0, 1536));
    EXPECT_EQ(rounded->placement.height, 3584);
    EXPECT_NEAR(rounded->distance, text == kCbc || text == kHighs ? 1e-7 : 0, 1e-12);
  }
}

TEST(SolutionFileTest, WithoutASolutionThereIsTheStatus) {
  const std::string texts[] = {
      "Infeasible - objective value 12.00000000\n**  0 u_512_9  12  0\n      1 x0  0.3  0\n",
      "Stopped on time (no integer solution - continuous used) - objective value 18432.00000000\n 0 u_1_9 1 0\n",
      "Model status\nInfeasible\n\n# Primal solution values\nNone\n",
      "Columns\n    Index Status        Lower        Upper       Primal         Dual  Type        Name\n"
      "        0                   0            9                            Integer     u_512_9\nRows\n\n"
      "Model status: Infeasible\n"};
  const std::string statuses[] = {"Infeasible", "Stopped on time (no integer solution - continuous used)", "Infeasible",
                                  "Infeasible"};
  for (int i = 0; i < 4; ++i) {
    absl::StatusOr<SolverSolution> solution = ParseSolverSolution(texts[i], "s", 2);
    ASSERT_TRUE(solution.ok()) << solution.status();
    EXPECT_FALSE(solution->has_solution) << i;
    EXPECT_FALSE(solution->optimal);
    EXPECT_EQ(solution->status, statuses[i]);
  }
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(SolutionFileTest, ErrorsNameTheirPlace) {
  const auto error = [](const std::string& text) {
    return std::string(ParseSolverSolution(text, "s", 2).status().message());
  };
  EXPECT_EQ(error(""), "s:1:1: neither a solution of CBC or HiGHS nor a minimalloc CSV");
  EXPECT_EQ(error(Replaced(kCbc, "2.9999999", "three")), "s:3:21: the value is not a number: 'three'");
  EXPECT_EQ(error(Replaced(kCbc, "2.9999999", "nan")), "s:3:21: the value is not a number: 'nan'");
  EXPECT_EQ(error(Replaced(kCbc, "x1", "x2")), "s:3:9: there is no block for 'x2': the instance has 2 blocks");
  EXPECT_EQ(error(Replaced(kCbc, "u_512_9", "v_512_9")),
            "s:4:56: there is no height: a variable named like u_512_2048 is missing");
  EXPECT_EQ(error(Replaced(kCbc, "u_512_9", "u_0_9")), "s:2:9: the height is not named like u_512_2048: 'u_0_9'");
  EXPECT_EQ(error(Replaced(kCbc, "u_512_9", "u_512_")), "s:2:9: the height is not named like u_512_2048: 'u_512_'");
  EXPECT_EQ(error(Replaced(kCbc, "z0_1", "x1")), "s:4:9: a second value for 'x1'");
  EXPECT_EQ(error(Replaced(kCbc, "z0_1", "u_1_2")), "s:4:9: a second height");
  EXPECT_EQ(error(kCbc + "5 x0"), "s:5:1: expected index, name, value and reduced cost, found '5 x0'");
  EXPECT_EQ(error(Replaced(kHighs, "x0 -1e-9\n", "x9000000000000000000000 3\n")), "s:11:7: the variable x0 is missing");
  EXPECT_EQ(error(kHighs.substr(0, kHighs.find("x1"))), "s:9:9: the file ends within its 4 columns");
  EXPECT_EQ(error(Replaced(kHighs, "# Columns 4", "# Columns four")),
            "s:7:1: expected the number of columns, found '# Columns four'");
  EXPECT_EQ(error(Replaced(kHighs, "# Columns 4", "# Columns 3")),
            "s:11:1: more than the 3 columns that the head counts, found 'z0_1 0'");
  EXPECT_EQ(error(Replaced(kHighs, "x0 -1e-9", "x0")), "s:9:1: expected a name and its value, found 'x0'");
  EXPECT_EQ(error("Model status\n"), "s:1:13: the model status is missing");
  EXPECT_EQ(error("Model status\nOptimal\n"), "s:2:8: the primal solution values are missing");
  EXPECT_EQ(error(kHighsPretty.substr(0, kHighsPretty.find("Model status"))), "s:9:1: the model status is missing");
}

// Values omitted by the sparse style are zero, so nothing in it may be misread or lost, in both forms.
TEST(SolutionFileTest, MalformedSparseFilesAreRefused) {
  for (const std::string head : {"# Columns -2", "# Columns -2 sparse"}) {
    const std::string text = Replaced(kHighs116Sparse, "# Columns -2 sparse", head);
    const auto error = [&](const std::string& what, const std::string& by) {
      return std::string(ParseSolverSolution(Replaced(text, what, by), "s", 2).status().message());
    };
    EXPECT_EQ(error("x1 3 2\n", ""), "s:10:12: the file ends within its 2 columns");
    EXPECT_EQ(error(" 2\n", " "), "s:11:1: expected a name, its value and its index, found 'x1 3 '");
    EXPECT_EQ(error("-2", "-3"), "s:11:7: the file ends within its 3 columns");
    EXPECT_EQ(error("-2", "-1"), "s:11:1: more than the 1 columns that the head counts, found 'x1 3 2'");
    EXPECT_EQ(error("-2", "2 of"),
              "s:9:1: expected the number of columns, found '# Columns 2 of" + head.substr(12) + "'");
    EXPECT_EQ(error("-2", "-99999999999"),
              "s:9:1: expected the number of columns, found '# Columns -99999999999" + head.substr(12) + "'");
    EXPECT_EQ(error("x1 3 2", "x1 3 two"), "s:11:1: the index is not a number from 0: 'two'");
    EXPECT_EQ(error("x1 3 2", "x1 3 -2"), "s:11:1: the index is not a number from 0: '-2'");
    EXPECT_EQ(error("x1 3 2", "x1 3 0"), "s:11:1: a second column with the index 0");
    EXPECT_EQ(error("x1 3 2", "u_512_9 3 2"), "s:11:1: a second height");
    EXPECT_EQ(error("x1 3 2", "x2 3 2"), "s:11:1: there is no block for 'x2': the instance has 2 blocks");
    for (const std::string name : {"x", "xl", "k", "k2", "z0", "z0_", "z_1", "z0_2", "t0", "y1"}) {
      EXPECT_EQ(error("x1 3 2", name + " 3 2"), "s:11:1: the model has no variable '" + name + "'");
    }
    EXPECT_EQ(error("x1 3 2", "k1 3 2"), "") << "another variable of the model";
    EXPECT_EQ(error("x1 3 2", "x1 inf 2"), "s:11:4: the value is not a number: 'inf'");
    EXPECT_EQ(error("x1 3 2", "x1 3"), "s:11:1: expected a name, its value and its index, found 'x1 3'");
  }
  const std::string twice = Replaced(Replaced(kHighs116Sparse, "-2", "-3"), "x1 3 2\n", "x1 3 2\nx1 4 3\n");
  EXPECT_EQ(ParseSolverSolution(twice, "s", 2).status().message(), "s:12:1: a second value for 'x1'");
  for (const std::string head : {"# Columns 0", "# Columns 0 sparse"}) {  // all zero, which a height is not
    const std::string text = kHighs116Sparse.substr(0, kHighs116Sparse.find("# Columns")) + head + "\n";
    EXPECT_EQ(
        ParseSolverSolution(text, "s", 2).status().message(),
        "s:9:" + std::to_string(head.size() + 1) + ": there is no height: a variable named like u_512_2048 is missing");
  }
}

// No prefix of a file is taken for more than it is, and none brings the reader down.
TEST(SolutionFileTest, EveryPrefixIsReadOrRefused) {
  for (const std::string& text : {kHighs, kHighsPretty, kHighsSparse, kHighs116, kHighs116Sparse, kCbc}) {
    for (size_t length = 0; length < text.size(); ++length) {
      absl::StatusOr<SolverSolution> solution = ParseSolverSolution(text.substr(0, length), "s", 2);
      EXPECT_TRUE(solution.ok() || solution.status().message().substr(0, 2) == "s:") << solution.status();
    }
  }
}

TEST(SolutionFileTest, OffsetsBeyondAnyAddressAreRefused) {
  SolverSolution solution;
  solution.unit = 512;
  solution.x = {0, 1e18};
  EXPECT_EQ(RoundSolution(solution, TwoBlocks()).status().message(), "x1 = 1e+18 is beyond any address");
}

TEST(SolutionFileTest, PlacementsAreMatchedById) {
  const Instance instance = TwoBlocks();
  const auto read = [&](const std::string& text) {
    return ParsePlacementCsv("id,lower,upper,size,offset\n" + text, "p", instance, {"a", "b"});
  };
  absl::StatusOr<Placement> placement = read("b,2,5,2048,1536\na,0,4,1536,0\n");
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_THAT(placement->offsets, ElementsAre(0, 1536));
  EXPECT_EQ(placement->height, 3584);
  EXPECT_EQ(read("b,2,5,2048,1536\n").status().message(), "p:3:1: block 'a' is missing");
  EXPECT_EQ(read("c,2,5,2048,1536\n").status().message(), "p:2:1: the instance has no block 'c'");
  EXPECT_EQ(read("a,0,4,1536,\n").status().message(), "p:2:1: block 'a' has no offset");
  EXPECT_EQ(read("b,2,5,2048,1536\na,0,4,1535,0\n").status().message(),
            "p:3:1: block 'a' has another size or residency in the instance");
  EXPECT_EQ(read("a,0,5,1536,0\n").status().message(),
            "p:2:1: block 'a' has another size or residency in the instance");
  EXPECT_EQ(ParsePlacementCsv("id,lower,upper,size\na,0,4,1536\n", "p", instance, {"a", "b"}).status().message(),
            "p:1:1: there is no column offset");
  EXPECT_TRUE(ParsePlacementCsv("id,lower,upper,size,offset\n0,0,4,1536,0\n1,2,5,2048,1536\n", "p", instance, {}).ok());
}

}  // namespace
}  // namespace hotpack
