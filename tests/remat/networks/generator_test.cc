#include "remat/networks/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "remat/core/schedule.h"
#include "remat/core/schedule_builder.h"
#include "remat/core/simulator.h"
#include "remat/core/values.h"
#include "remat/core/verifier.h"
#include "remat/files/graph_json.h"
#include "tests/runs.h"

namespace hotpack::remat {
namespace {

// The training step as it is, as planners rebuild it, and with drawn gaps computed again or swapped.
void ExpectSound(const std::string& spec, uint64_t seed) {
  const absl::StatusOr<Graph> graph = Generate(spec);
  ASSERT_TRUE(graph.ok()) << spec << ": " << graph.status();
  ASSERT_TRUE(Check(*graph).ok()) << spec << ": " << Check(*graph);
  EXPECT_EQ(Verify(*graph, Baseline(*graph)), "") << spec;
  const Values values = ValuesOf(*graph);
  std::vector<GapAction> ways(values.gaps.size(), GapAction::kKeep);
  const Schedule held = BuildSchedule(*graph, values, ways).schedule;
  EXPECT_EQ(Verify(*graph, held), "") << spec;
  EXPECT_LE(Simulate(*graph, held)->live_peak, Simulate(*graph, Baseline(*graph))->live_peak) << spec;
  std::mt19937_64 random(seed);
  for (GapAction& way : ways)
    way = random() % 4 == 0 ? GapAction::kRecompute : random() % 8 == 0 ? GapAction::kOffload : GapAction::kKeep;
  const Schedule drawn = BuildSchedule(*graph, values, ways).schedule;
  EXPECT_EQ(Verify(*graph, drawn), "") << spec;
  EXPECT_TRUE(Simulate(*graph, drawn).ok()) << spec;
}

TEST(GeneratorTest, EachOneMakesSoundGraphs) {
  for (const char* spec : {"resnet",
                           "resnet:17",
                           "resnet:20,batch=1",
                           "resnet:50,image=32,classes=10",
                           "resnet:152,batch=3,image=1",
                           "vgg:11",
                           "vgg:13,image=32",
                           "vgg:16,weights=0",
                           "vgg:19,batch=64,updates=0",
                           "unet",
                           "unet:batch=2,depth=1,image=2",
                           "unet:depth=6,image=128,width=3",
                           "inception:",
                           "inception:batch=1,image=75",
                           "stochastic_depth:50,seed=7",
                           "stochastic_depth:101,survival=0,seed=2",
                           "stochastic_depth:50,survival=100",
                           "kmeans",
                           "kmeans:iterations=1,points=1",
                           "transformer",
                           "transformer:layers=1,heads=1,width=1,hidden=1,steps=1,batch=1,vocabulary=1",
                           "transformer:2,states=2,stay=0",
                           "resnet:50,workspace=64",
                           "lstm:steps=9",
                           "lstm:2x8,steps=1,batch=1,inputs=1,classes=1",
                           "nmt:steps=7",
                           "nmt:1,hidden=2,steps=1,batch=1,normalise=1",
                           "transformer_nmt:2,steps=5",
                           "deepspeech2:2,frames=60",
                           "deepspeech2:1x3,frames=31,bands=81,batch=1"}) {
    ExpectSound(spec, 1);
  }
}

TEST(GeneratorTest, DrawnParametersMakeSoundGraphs) {
  std::mt19937_64 random(3);
  for (int i = 0; i < testing::Runs(60); ++i) {
    const Generator& generator = Generators()[static_cast<size_t>(i) % Generators().size()];
    std::string spec = generator.name + ":";
    for (const Key& key : generator.keys) {
      // Small graphs of small steps, but every key is also tried with another value than its default.
      if (random() % 2 == 0 || key.name == "depth" || key.name == "image" || key.name == "layers" ||
          key.name == "width" || key.name == "hidden") {
        continue;  // not every number is one of these
      }
      const int64_t most = std::min(key.most, key.least + 9);
      absl::StrAppend(&spec, spec.back() == ':' ? "" : ",", key.name, "=",
                      key.least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - key.least + 1)));
    }
    for (const Key& key : generator.keys) {  // these would be tens of thousands of operators
      const bool long_sequence =
          key.name == "frames" || (key.name == "steps" && !generator.name.starts_with("transformer"));
      if (long_sequence && spec.find(key.name + "=") == std::string::npos) {
        absl::StrAppend(&spec, spec.back() == ':' ? "" : ",", key.name, "=", key.least + 4);
      }
    }
    if (spec.find("heads=") != std::string::npos) absl::StrAppend(&spec, ",width=2520");
    ExpectSound(spec, static_cast<uint64_t>(i));
  }
}

TEST(GeneratorTest, PlacesAndNamesSayTheSame) {
  EXPECT_EQ(FormatGraphJson(*Generate("resnet:101,batch=2")), FormatGraphJson(*Generate("resnet:batch=2,depth=101")));
  EXPECT_EQ(FormatGraphJson(*Generate("vgg")), FormatGraphJson(*Generate("vgg:16,batch=64")));
  EXPECT_NE(FormatGraphJson(*Generate("vgg")), FormatGraphJson(*Generate("vgg:16,batch=63")));
  for (const char* spec : {"vgg", "vgg:", "resnet:1007,batch=32", "vgg,batch=2"})
    EXPECT_TRUE(NamesGenerator(spec)) << spec;
  for (const char* spec : {"", "vg", "vgg.json", "resnet-50", ":"}) EXPECT_FALSE(NamesGenerator(spec)) << spec;
}

TEST(GeneratorTest, TheSeedDecidesWhichBlocksAreThere) {
  const auto blocks = [](const std::string& spec) { return CountOf(*GenerateNetwork(spec), "sum"); };
  EXPECT_EQ(FormatGraphJson(*Generate("stochastic_depth:50,seed=5")),
            FormatGraphJson(*Generate("stochastic_depth:50,seed=5")));
  EXPECT_EQ(FormatGraphJson(*Generate("stochastic_depth:50,survival=100")), FormatGraphJson(*Generate("resnet:50")));
  // Of 16 blocks, 16 - (1 + ... + 16) / 16 · 0.5 = 11.75 are expected; 7.5 where the last one never is.
  double sum = 0, sum_of_none = 0;
  for (int seed = 1; seed <= 400; ++seed) {
    sum += static_cast<double>(blocks(absl::StrCat("stochastic_depth:50,seed=", seed)));
    sum_of_none += static_cast<double>(blocks(absl::StrCat("stochastic_depth:50,survival=0,seed=", seed)));
  }
  EXPECT_NEAR(sum / 400, 11.75, 0.3);
  EXPECT_NEAR(sum_of_none / 400, 7.5, 0.3);
}

TEST(GeneratorTest, NumbersByPlaceMayBeLeftOut) {
  EXPECT_EQ(FormatGraphJson(*Generate("vgg,batch=2")), FormatGraphJson(*Generate("vgg:16,batch=2")));
}

TEST(GeneratorTest, FaultsAreOneLine) {
  const struct {
    const char* spec;
    const char* error;
  } cases[] = {
      {"resnt:50", "there is no generator 'resnt'; there are "},
      {"", "there is no generator ''; there are "},
      {"resnet:50,bach=32",
       "resnet: the key 'bach' is not known; keys are depth, batch, image, classes, workspace, weights, updates, "
       "states, stay"},
      {"resnet:50,batch=0", "resnet: batch: 0 is not from 1 to 1000000"},
      {"resnet:50,batch=-3", "resnet: batch: -3 is not from 1 to 1000000"},
      {"resnet:50,batch=99999999999999999999", "resnet: batch: '99999999999999999999' is no whole number"},
      {"resnet:50,batch=1.5", "resnet: batch: '1.5' is no whole number"},
      {"resnet:50,batch=", "resnet: batch: '' is no whole number"},
      {"resnet:50,batch=2,batch=2", "resnet: batch is given twice"},
      {"resnet:50,depth=50", "resnet: depth is given twice"},
      {"resnet:50,32", "resnet: '32' is no KEY=NUMBER"},
      {"resnet:50,", "resnet: '' is no KEY=NUMBER"},
      {"resnet:50x3", "resnet: '50x3': no more than depth stand by their place"},
      {"resnet:fifty", "resnet: depth: 'fifty' is no whole number"},
      {"resnet:51", "resnet: 51 convolutions: 50, 101, 152, 200, or 3 · blocks + 5"},
      {"resnet:1000000", "resnet: depth: 1000000 is not from 17 to 100001"},
      {"resnet:100001,batch=1000000,image=16384", "resnet: the storages add up to more than 2^62 bytes"},
      {"unet:batch=1000000,image=16384,width=4096", "unet: concat4: more than 2^62 bytes"},
      {"vgg:17", "vgg: 17 layers: there are 11, 13, 16 and 19"},
      {"unet:image=100", "unet: an image of 100 is no multiple of 16"},
      {"unet:16", "unet: '16' is no KEY=NUMBER"},
      {"inception:image=74", "inception: image: 74 is not from 75 to 16384"},
      {"transformer:6,width=100", "transformer: a width of 100 is no multiple of 8 heads"},
      {"kmeans:points=1000000000000,clusters=1000000,dimensions=1000000", "kmeans: "},
  };
  for (const auto& each : cases) {
    const absl::Status status = Generate(each.spec).status();
    const std::string message(status.message());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << each.spec;
    EXPECT_EQ(message.substr(0, std::string(each.error).size()), each.error) << each.spec;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
  for (const Generator& generator : Generators()) {
    EXPECT_NE(Generate("none").status().message().find(generator.name), std::string::npos) << generator.name;
  }
}

// Whatever is written, the answer is a graph or one line.
TEST(GeneratorTest, WrittenInAnyWay) {
  const std::string specs[] = {"resnet:17,batch=1,image=8",
                               "vgg:11,batch=2",
                               "unet:depth=1",
                               "kmeans:iterations=2",
                               "transformer:1,heads=2,steps=3",
                               "stochastic_depth:20,seed=9,survival=3",
                               "inception:batch=1"};
  const std::string letters = "=,:x-.0123 a\n";
  std::mt19937_64 random(11);
  int made = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string spec = specs[random() % std::size(specs)];
    for (uint64_t changes = random() % 4; changes > 0; --changes) {
      const size_t at = random() % spec.size();
      if (random() % 3 == 0) {
        spec.erase(at, 1);
      } else {
        spec[at] = letters[random() % letters.size()];
      }
      if (spec.empty()) break;
    }
    const absl::StatusOr<Graph> graph = Generate(spec);
    if (graph.ok()) {
      ++made;
      EXPECT_TRUE(Check(*graph).ok()) << spec;
    } else {
      EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument) << spec;
      EXPECT_EQ(graph.status().message().find('\n'), absl::string_view::npos) << spec;
    }
  }
  EXPECT_GT(made, 300);
  EXPECT_LT(made, 2700);
}

TEST(GeneratorTest, TheHelpNamesEveryKey) {
  const std::string help = GeneratorHelp();
  for (const Generator& generator : Generators()) {
    EXPECT_NE(help.find(absl::StrCat("\n", generator.name)), std::string::npos) << generator.name;
    EXPECT_TRUE((generator.network == nullptr) != (generator.graph == nullptr)) << generator.name;
    for (const Key& key : generator.keys) {
      EXPECT_TRUE(key.least <= key.standard && key.standard <= key.most) << generator.name << " " << key.name;
      EXPECT_FALSE(key.what.empty()) << generator.name << " " << key.name;
      EXPECT_NE(help.find(absl::StrCat("\n  ", key.name, "=", key.standard)), std::string::npos) << key.name;
    }
    for (const std::string& place : generator.places) {
      EXPECT_EQ(std::count_if(generator.keys.begin(), generator.keys.end(),
                              [&place](const Key& key) { return key.name == place; }),
                1)
          << place;
    }
  }
}

// The page's table has every generator, and its keys' defaults.
TEST(GeneratorTest, TheDocumentSaysTheSame) {
  std::ifstream file(std::string(HOTPACK_SOURCE_DIR) + "/docs/research/networks.md");
  std::map<std::string, std::string> rows;  // by name
  std::string text;
  for (std::string line; std::getline(file, line);) {
    absl::StrAppend(&text, line, "\n");
    if (line.starts_with("| `")) rows[line.substr(3, line.find_first_of(":`", 3) - 3)] = line;
  }
  for (const Generator& generator : Generators()) {
    ASSERT_TRUE(rows.contains(generator.name)) << generator.name;
    for (const Key& key : generator.keys) {
      const bool by_place = std::count(generator.places.begin(), generator.places.end(), key.name) > 0;
      const bool said =
          rows[generator.name].find(absl::StrCat("`", key.name, "=", key.standard, "`")) != std::string::npos;
      const bool of_several = text.find(absl::StrCat("`", key.name, "` (", key.standard)) != std::string::npos;
      const bool as_before = rows[generator.name].find("the same, ") != std::string::npos;
      EXPECT_TRUE(by_place || said || of_several || as_before) << generator.name << " " << key.name;
    }
  }
}

}  // namespace
}  // namespace hotpack::remat
