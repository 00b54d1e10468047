// Repeated modules in one row of the table of `hotpack need`.
#include "tools/need/fold_modules.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hotpack {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PeakPart Module(const std::string& name, uint64_t parameters, uint64_t saved) {
  return {name, parameters + saved, {{"parameter", parameters}, {"saved", saved}}};
}

std::vector<std::string> Names(const std::vector<PeakPart>& parts) {
  std::vector<std::string> names;
  for (const PeakPart& part : parts) names.push_back(part.name);
  return names;
}

TEST(FoldModulesTest, LayersShareARow) {
  const std::vector<PeakPart> folded =
      FoldModules({Module("embedding", 60, 40), Module("layer.0.fc", 10, 70), Module("layer.11.fc", 10, 64),
                   Module("layer.1.fc", 20, 60), Module("layer.0.attention.2", 3, 4)});
  EXPECT_THAT(Names(folded), ElementsAre("3 x layer.*.fc", "embedding", "layer.0.attention.2"));
  EXPECT_EQ(folded[0].bytes, 234u);
  EXPECT_THAT(folded[0].kinds, ElementsAre(std::pair<std::string, uint64_t>("saved", 194),
                                           std::pair<std::string, uint64_t>("parameter", 40)));
  EXPECT_THAT(folded[1].kinds, ElementsAre(std::pair<std::string, uint64_t>("parameter", 60),
                                           std::pair<std::string, uint64_t>("saved", 40)));
}

// The one with a workspace stays visible.
TEST(FoldModulesTest, OneThatHasMoreIsNotHidden) {
  const std::vector<PeakPart> folded =
      FoldModules({Module("0", 10, 7), Module("1", 10, 9), Module("5", 50, 0), Module("7", 10, 10)});
  EXPECT_THAT(Names(folded), ElementsAre("5", "7 and 1 like it", "0"));
  EXPECT_EQ(folded[1].bytes, 39u);
}

TEST(FoldModulesTest, OddNames) {
  EXPECT_THAT(FoldModules({}), IsEmpty());
  const std::vector<PeakPart> folded =
      FoldModules({Module("", 9, 0), Module("a.", 8, 0), Module("a..1", 7, 0), Module("layer1.fc", 6, 0),
                   Module("layer2.fc", 6, 0), Module("(no module)", 5, 0), Module(".", 0, 0)});
  EXPECT_THAT(Names(folded), ElementsAre("", "a.", "a..1", "layer1.fc", "layer2.fc", "(no module)", "."));
}

}  // namespace
}  // namespace hotpack
