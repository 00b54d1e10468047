// Programs that keep the contract of PyTorch's caching allocator (docs/correctness.md), drawn from seeds, through
// libhotpack_torch.so on the simulated device. Its happens-before checker is the judge. The same programs against a
// model of that allocator show that they are right, and that the checker detects a wrong one.
//
// A failure lists each class of faults with its first program, and the command that repeats it. With `shrink` after it
// the command prints the reduced program.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdlib>
#include <sstream>

#include "tests/property/pool_contract_draw.h"
#include "tests/support/subprocess.h"

namespace {

using property::ContractShape;

uint64_t Number(const char* name, uint64_t otherwise) {
  const char* text = getenv(name);
  return text != nullptr && *text != '\0' ? strtoull(text, nullptr, 10) : otherwise;
}

// Of all programs that are played through hotpack.
uint64_t Programs(const ContractShape& shape, bool both) {
  uint64_t weights = 0;
  for (const ContractShape& other : property::ContractShapes()) weights += 3 * static_cast<uint64_t>(other.weight);
  const uint64_t share = static_cast<uint64_t>(shape.weight) * (both ? 1 : 2);
  return std::max<uint64_t>(Number("HOTPACK_TEST_PROGRAMS", 20000) * share / weights, 40);
}

struct Result {
  int code = 0;
  std::string out, again;
  std::map<std::string, uint64_t> figures;
};

// `how`: enable, both, model, wrong.
Result Play(const ContractShape& shape, const std::string& how, uint64_t programs) {
  const std::string binaries = HOTPACK_BINARY_DIR;
  const char* preload = getenv("HOTPACK_TEST_PRELOAD");  // a build that was broken on purpose
  std::map<std::string, std::string> environment = {
      {"LD_LIBRARY_PATH", binaries + "/lib/simgpu:" + binaries + "/lib"},
      {"LD_PRELOAD", how == "both" ? preload != nullptr ? preload : HOTPACK_PRELOAD : ""},
      {"HOTPACK", ""},
      {"HOTPACK_ARENA", ""},
      {"HOTPACK_PLAN", ""},
      {"HOTPACK_TRACE", ""}};
  std::vector<std::string> command = {binaries + "/tests/pool_contract", shape.name,
                                      std::to_string(Number("HOTPACK_TEST_SEED", 1)), std::to_string(programs),
                                      "go-on"};
  if (how == "model" || how == "wrong") command.push_back("model");
  if (how == "wrong") command.push_back("wrong");
  const hotpack_test::Outcome outcome = hotpack_test::RunProgram(command, environment);
  Result result{outcome.code, outcome.out + outcome.err, {}, {}};
  for (const auto& [name, value] : environment) result.again += value.empty() ? "" : name + "='" + value + "' ";
  for (const std::string& word : command) result.again += word + " ";
  std::istringstream words(outcome.out.substr(outcome.out.rfind("programs ") + 1));
  std::string name;
  uint64_t value = 0;
  words >> name >> result.figures["programs"];
  while (words >> name >> value) result.figures[name] = value;
  return result;
}

std::vector<const ContractShape*> Shapes() {
  std::vector<const ContractShape*> shapes;
  for (const ContractShape& shape : property::ContractShapes()) shapes.push_back(&shape);
  return shapes;
}

class PoolContract : public testing::TestWithParam<const ContractShape*> {
 protected:
  void IsServedRight(const std::string& how) {
    const ContractShape& shape = *GetParam();
    const Result result = Play(shape, how, Programs(shape, how == "both"));
    const auto& sum = result.figures;
    ASSERT_EQ(result.code, 0) << result.out << "once more: " << result.again;
    ASSERT_TRUE(sum.contains("passed_through")) << result.out;
    printf("%s", result.out.c_str());
    // They are evidence only if all kinds of draws occurred, and plans were made and followed.
    EXPECT_GT(sum.at("requests"), 20 * sum.at("programs"));
    EXPECT_EQ(sum.at("requests"), sum.at("releases") + sum.at("refused"));
    EXPECT_GT(shape.told == 1000 ? sum.at("told") : sum.at("untold"), sum.at("programs"));
    EXPECT_GT(sum.at("owed"), sum.at("programs"));
    if (shape.told != 0) {
      EXPECT_GT(sum.at("told"), 0u);
    }
    EXPECT_GT(sum.at("streams_ended"), 0u);
    if (shape.announced || shape.raw) {
      EXPECT_GT(sum.at("captures"), sum.at("programs") / 4);
      EXPECT_GT(sum.at("launches"), sum.at("programs") / 8);
    }
    const std::string name = shape.name;
    if (name == "Off" || name == "Recorded") {
      EXPECT_EQ(sum.at("served"), 0u);
    } else {
      // The order of threads that run freely is the scheduler's, and so is how much of it repeats.
      EXPECT_GT(sum.at("planned"), shape.together > 1 ? sum.at("programs") / 4 : sum.at("requests") / 40);
      EXPECT_GT(sum.at("plans"), sum.at("programs") / 4);
      EXPECT_GT(sum.at("displaced"), 0u);
    }
    if (name == "PlainArena") {
      EXPECT_GT(sum.at("passed_through"), 0u);
    }
  }
};

TEST_P(PoolContract, IsServedRight) { IsServedRight("enable"); }
TEST_P(PoolContract, IsServedRightUnderThePreload) { IsServedRight("both"); }

TEST_P(PoolContract, IsRightByItself) {
  const Result result = Play(*GetParam(), "model", std::max<uint64_t>(Programs(*GetParam(), false) / 4, 40));
  EXPECT_EQ(result.code, 0) << result.out << "once more: " << result.again;
}

TEST_P(PoolContract, IsFoundWrongWithoutOneOfItsWaits) {
  const Result result = Play(*GetParam(), "wrong", 100);
  ASSERT_TRUE(result.figures.contains("failed")) << result.out;
  EXPECT_GT(result.figures.at("programs"), 10u);
  EXPECT_GT(4 * result.figures.at("failed"), result.figures.at("programs"))
      << result.out << "once more: " << result.again;
}

INSTANTIATE_TEST_SUITE_P(All, PoolContract, testing::ValuesIn(Shapes()),
                         [](const auto& param) { return std::string(param.param->name); });

}  // namespace
