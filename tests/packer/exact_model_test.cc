#include "packer/exact_model.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model_text.h"
#include "packer/model_writer.h"
#include "packer/pack.h"
#include "packer/validator.h"
#include "random_instance.h"

namespace hotpack {
namespace {

using ::testing::ElementsAre;
using testing::FirstViolation;
using ::testing::HasSubstr;
using testing::ModelText;
using testing::RandomInstance;
using testing::RandomShape;
using testing::ReadLp;
using testing::ReadMps;

std::string Text(const ExactModel& model, ModelFormat format, const std::vector<std::string>& ids = {}) {
  std::string text;
  const absl::Status status = WriteModel(model, format, ids, [&](absl::string_view piece) {
    text.append(piece.data(), piece.size());
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return text;
}

// Two blocks side by side in time under one that is carried over the boundary:
//
//   offset ▲ 4096 ┌───┐       ┌───┐
//          │      │ 0 │       │ 0 │
//          │ 1024 ├───┴──┬────┴───┤
//          │      │  1   │   2    │
//          └──────┴──────┴────────┴─► clock
Instance Example() {
  Instance instance;
  instance.blocks.resize(3);
  instance.blocks[0] = {.size = 3072, .residency = {{0, 3}, {7, 9}}};
  instance.blocks[1] = {.size = 1024, .pinned = 0, .residency = {{0, 4}}};
  instance.blocks[2] = {.size = 1024, .alignment = 2048, .residency = {{4, 9}}};
  return instance;
}

TEST(ExactModelTest, TextOfASmallModel) {
  absl::StatusOr<ExactModel> model = BuildExactModel(Example());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(Text(*model, ModelFormat::kLp, {"weights", "conv\n1", std::string(400, 'x')}),
            "\\ Dynamic storage allocation: 3 blocks, 2 pairs that are resident together\n"
            "\\ u and xI in units of the first number of u's name\n"
            "\\ x0 weights\n\\ x1 conv\\n1\n\\ x2 " +
                std::string(160, 'x') +
                "...\n"
                "Minimize\n obj: u_1024_4\nSubject To\n"
                " t0: u_1024_4 - x0 >= 3\n t1: u_1024_4 - x1 >= 1\n t2: u_1024_4 - x2 >= 1\n m2: x2 - 2 k2 = 0\n"
                " lb: u_1024_4 >= 4\n"
                " a0_1: x0 - x1 - 4 z0_1 <= -3\n b0_1: x1 - x0 + 4 z0_1 <= 3\n"
                " a0_2: x0 - x2 - 4 z0_2 <= -3\n b0_2: x2 - x0 + 4 z0_2 <= 3\n"
                "Bounds\n 0 <= u_1024_4 <= 4\n 0 <= x0 <= 1\n x1 = 0\n 0 <= x2 <= 3\n"
                "Generals\n u_1024_4\n x0\n x1\n x2\n k2\nBinaries\n z0_1\n z0_2\nEnd\n");
}

TEST(ExactModelTest, AsPublishedHasNoneOfOurAdditions) {
  absl::StatusOr<ExactModel> model = BuildExactModel(Example(), {.as_published = true, .memory = 1 << 20});
  ASSERT_TRUE(model.ok()) << model.status();
  const ModelText text = ReadLp(Text(*model, ModelFormat::kLp));
  EXPECT_EQ(text.rows.count("lb"), 0u);
  EXPECT_EQ(text.bounds.at("u_1_1048576").most, 1 << 20);
  EXPECT_EQ(text.bounds.at("x0"), testing::ModelBounds());  // equation (6) alone
  EXPECT_EQ(text.rows.at("a0_2").right, -3072);
  EXPECT_EQ(text.rows.at("b0_2").terms.at("z0_2"), 1 << 20);
  EXPECT_EQ(BuildExactModel(Example(), {.as_published = true, .memory = 4095}).status().message(),
            "W = 4095 bytes of memory is less than the lower bound 4096");
}

TEST(ExactModelTest, UnitDividesWhatTheOptimumMayNeed) {
  const auto unit = [](std::vector<Block> blocks) {
    for (Block& block : blocks) block.residency = {{0, 1}};
    return ModelUnit({blocks});
  };
  EXPECT_EQ(unit({}), 1);
  EXPECT_EQ(unit({{.size = 1536}, {.size = 1024}}), 512);
  EXPECT_EQ(unit({{.size = 1536, .alignment = 256}, {.size = 1024, .alignment = 1}}), 512);  // of itself
  EXPECT_EQ(unit({{.size = 1024, .alignment = 4096}}), 1024);
  EXPECT_EQ(unit({{.size = 12, .alignment = 8}}), 4);
  EXPECT_EQ(unit({{.size = 12, .alignment = 4}, {.size = 12, .alignment = 9}}), 1);  // 4 does not divide 3
  EXPECT_EQ(unit({{.size = 8, .pinned = 4}, {.size = 8}}), 4);
  EXPECT_EQ(unit({{.size = 8, .pinned = 0}}), 8);
}

TEST(ExactModelTest, RefusesWhatItCannotModel) {
  EXPECT_EQ(BuildExactModel({}).status().message(), "there are no blocks to place");
  Instance bad = Example();
  bad.blocks[0].size = 0;
  EXPECT_EQ(BuildExactModel(bad).status().message(), PackStatusText(PackStatus::kBadInstance));
  EXPECT_EQ(BuildExactModel(Example(), {.pair_limit = 1}).status().message(),
            "2 pairs of residency intervals overlap, more than the 1 for which a model is written");
  EXPECT_TRUE(BuildExactModel(Example(), {.pair_limit = 2}).ok());
  Instance large;
  large.blocks = {{.size = (Bytes{1} << 53) + 1, .residency = {{0, 1}}}, {.size = 2, .residency = {{0, 1}}}};
  EXPECT_THAT(std::string(BuildExactModel(large).status().message()), HasSubstr("is above 2^53"));
}

TEST(ExactModelTest, ErrorsOfTheSinkEndTheWriting) {
  absl::StatusOr<ExactModel> model = BuildExactModel(Example());
  for (ModelFormat format : {ModelFormat::kLp, ModelFormat::kMps}) {
    EXPECT_EQ(WriteModel(*model, format, {}, [](absl::string_view) { return absl::DataLossError("full"); }).message(),
              "full");
  }
}

std::string Name(char kind, int64_t block) { return std::string(1, kind).append(std::to_string(block)); }

// Returns each variable's value for a placement: z as the blocks lie, k as many alignments as fit below.
std::map<std::string, double> ValuesOf(const ExactModel& model, const std::vector<int64_t>& x) {
  std::map<std::string, double> values;
  int64_t height = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    values[Name('x', static_cast<int64_t>(i))] = static_cast<double>(x[i]);
    values[Name('k', static_cast<int64_t>(i))] = static_cast<double>(x[i] / model.blocks[i].alignment);
    height = std::max(height, x[i] + model.blocks[i].size);
  }
  for (const auto& [i, j] : model.pairs) {
    values[Name('z', i).append(1, '_').append(std::to_string(j))] = x[i] + model.blocks[i].size <= x[j] ? 0 : 1;
  }
  values[HeightName(model)] = static_cast<double>(height);
  return values;
}

std::vector<int64_t> InUnits(const Placement& placement, Bytes unit) {
  std::vector<int64_t> x;
  for (Offset offset : placement.offsets) x.push_back(offset / unit);
  return x;
}

// The model and the validator must agree on every placement of its height.
TEST(ExactModelTest, RowsHoldExactlyForValidPlacements) {
  std::mt19937_64 random(testing::TestSeed());
  int valid = 0, invalid = 0;
  for (int round = 0; round < 300; ++round) {
    testing::InstanceShape shape = RandomShape(&random);
    shape.blocks = 1 + shape.blocks % 8;
    Instance instance = RandomInstance(shape, &random);
    const Bytes scale = 1 + static_cast<Bytes>(random() % 3) * 511;
    for (Block& block : instance.blocks) {
      block.size *= scale;
      if (block.alignment > 1) block.alignment *= scale;
      if (block.pinned != kNotPinned) block.pinned *= scale;
    }
    absl::StatusOr<ExactModel> model =
        BuildExactModel(instance, {.as_published = random() % 4 == 0, .memory = 1 << 20});
    ASSERT_TRUE(model.ok()) << model.status();
    const ModelText text = ReadLp(Text(*model, ModelFormat::kLp));
    ASSERT_EQ(text, ReadMps(Text(*model, ModelFormat::kMps)));
    EXPECT_THAT(text.objective, ElementsAre(std::pair<const std::string, double>(HeightName(*model), 1)));
    std::vector<int64_t> x = InUnits(Pack(instance, {.algorithm = Algorithm::kBestFit}).placement, model->unit);
    for (int change = 0; change < 20; ++change) {
      Placement placement;
      for (size_t i = 0; i < x.size(); ++i) {
        placement.offsets.push_back(x[i] * model->unit);
        placement.height = std::max(placement.height, placement.offsets[i] + instance.blocks[i].size);
      }
      const std::string fault = Validate(instance, placement);
      const bool fits = placement.height <= model->big * model->unit;
      const std::string violation = FirstViolation(text, ValuesOf(*model, x));
      ASSERT_EQ(violation.empty(), fault.empty() && fits) << fault << violation << "\n"
                                                          << Text(*model, ModelFormat::kLp);
      ++(violation.empty() ? valid : invalid);
      if (change % 4 == 3) x = InUnits(Pack(instance, {.algorithm = Algorithm::kFirstFit}).placement, model->unit);
      const size_t moved = random() % x.size();
      x[moved] = static_cast<int64_t>(random() % static_cast<uint64_t>(model->lower_bound + 2 + x[moved]));
    }
  }
  EXPECT_GT(valid, 500);
  EXPECT_GT(invalid, 500);
}

}  // namespace
}  // namespace hotpack
