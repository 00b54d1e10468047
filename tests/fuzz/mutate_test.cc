// The driver's mutations: the same for the same seed, within the length, and of every kind.
#include "tests/fuzz/mutate.h"

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hotpack::fuzz {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Inputs(uint64_t seed, size_t count) {
  Mutator mutator({"id,size\nx,17\n", "second seed"}, {"TOKEN"}, 64, seed);
  std::vector<std::string> inputs;
  for (size_t i = 0; i < count; ++i) inputs.push_back(mutator.Next());
  return inputs;
}

TEST(MutatorTest, SameSeedSameInputs) {
  EXPECT_EQ(Inputs(7, 500), Inputs(7, 500));
  EXPECT_NE(Inputs(7, 500), Inputs(8, 500));
}

TEST(MutatorTest, InputsDifferStayShortAndSeeEveryChange) {
  const std::vector<std::string> inputs = Inputs(1, 5000);
  const std::set<std::string> different(inputs.begin(), inputs.end());
  EXPECT_GT(different.size(), inputs.size() / 2);
  bool token = false, spliced = false, cut = false, large = false;
  for (const std::string& input : inputs) {
    ASSERT_LE(input.size(), 64u);
    token |= input.find("TOKEN") != std::string::npos;
    spliced |= input.find("id,") != std::string::npos && input.find("seed") != std::string::npos;
    cut |= input.size() > 4 && std::string("id,size\nx,17\n").rfind(input, 0) == 0;
    large |= input.find("9223372036854775807") != std::string::npos;
  }
  EXPECT_TRUE(token && spliced && cut && large) << token << spliced << cut << large;
}

TEST(MutatorTest, GrowsOutOfNothing) {
  Mutator mutator({}, {}, 64, 1);
  std::set<std::string> different;
  for (int i = 0; i < 1000; ++i) different.insert(mutator.Next());
  EXPECT_GT(different.size(), 100u);
}

TEST(DictionaryTest, ReadsLibFuzzersForm) {
  std::vector<std::string> tokens;
  std::string fault;
  ASSERT_TRUE(ParseDictionary("# words\n\nname=\"a\\\"b\"\n\"\\x0d\\x0A\"\n\"\\\\\"", &tokens, &fault)) << fault;
  EXPECT_THAT(tokens, ElementsAre("a\"b", "\r\n", "\\"));
  for (const char* wrong : {"word", "\"", "\"a", "\"\"", "\"\\q\"", "\"\\x1\"", "\"a\"b\""}) {
    EXPECT_FALSE(ParseDictionary(std::string("\"fine\"\n") + wrong, &tokens, &fault)) << wrong;
    EXPECT_EQ(fault, "line 2 is no token in quotes");
  }
}

}  // namespace
}  // namespace hotpack::fuzz
