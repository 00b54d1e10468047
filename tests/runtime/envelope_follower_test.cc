// The follower of an envelope: which entry it takes for a request.
#include "runtime/script/envelope_follower.h"

#include "gtest/gtest.h"
#include "tests/runtime/envelope_steps.h"

namespace hotpack {
namespace {

using hotpack_test::EnvelopeJob;
using hotpack_test::Layers;
using hotpack_test::PlayStep;

class EnvelopeFollowerTest : public testing::Test {
 protected:
  void Learn(const Layers& layers) {
    PlayStep(layers, &job_);
    truth_ = job_.End(&envelope_);
    follower_.Start(MakeEnvelopeScript(envelope_, nullptr), {});
  }
  // Plays a step that the follower answers, and merges it. Returns its answers.
  std::vector<uint32_t> Follow(const Layers& layers) {
    std::vector<uint32_t> answers;
    struct Handle {
      uint64_t ordinal;
      uint32_t entry;
    };
    PlayStep(
        layers,
        [&](uint32_t units) {
          const uint32_t entry = follower_.Next(job_.Sign(units));
          answers.push_back(entry);
          if (entry != kNone) follower_.Placed(entry);
          return Handle{job_.Request(units, entry), entry};
        },
        [&](const Handle& handle) {
          job_.Release(handle.ordinal);
          if (handle.entry != kNone) follower_.Released(handle.entry);
        });
    truth_ = job_.End(&envelope_);
    follower_.Start(MakeEnvelopeScript(envelope_, nullptr), {});
    return answers;
  }

  Envelope envelope_;
  EnvelopeJob job_;
  EnvelopeFollower follower_;
  std::vector<uint32_t> truth_;  // of the last step
};

TEST_F(EnvelopeFollowerTest, KnowsNothingAtFirst) { EXPECT_EQ(follower_.Next({10, 0, 0}), kNone); }

TEST_F(EnvelopeFollowerTest, ARepetitionIsExpected) {
  for (int i = 0; i < 3; ++i) Learn({});
  const auto before = follower_.figures();
  EXPECT_EQ(Follow({}), truth_);
  EXPECT_EQ(follower_.figures().expected - before.expected, truth_.size()) << "no beam is needed";
  EXPECT_EQ(follower_.figures().searches, before.searches);
}

TEST_F(EnvelopeFollowerTest, FollowsThroughOtherLengths) {
  for (const uint32_t length : {10u, 13u, 9u}) Learn({.length = length});
  const auto before = follower_.figures();
  for (const uint32_t length : {11u, 12u, 13u}) EXPECT_EQ(Follow({.length = length}), truth_) << length;
  EXPECT_EQ(follower_.figures().beam, before.beam) << "an only successor whose size changes is expected";
}

TEST_F(EnvelopeFollowerTest, FollowsWhereALayerIsLeftOut) {
  for (const int skipped : {-1, 2, -1}) Learn({.skipped = skipped});
  EXPECT_EQ(Follow({.skipped = 2}), truth_) << "seen before";
  const std::vector<uint32_t> answers = Follow({.skipped = 4});
  size_t right = 0;
  for (size_t i = 0; i < answers.size(); ++i) right += answers[i] == truth_[i];
  EXPECT_GE(right * 10, answers.size() * 8) << "not seen before";
}

TEST_F(EnvelopeFollowerTest, AChoiceThatTheSizeTellsIsExpected) {
  for (const int skipped : {-1, 2, -1, 2, -1, 2}) Learn({.skipped = skipped});
  const auto before = follower_.figures();
  for (const int skipped : {-1, 2}) EXPECT_EQ(Follow({.skipped = skipped}), truth_) << skipped;
  EXPECT_LE(follower_.figures().beam - before.beam, 4u) << "where two successors look alike";
}

TEST_F(EnvelopeFollowerTest, FindsItsWayBack) {
  for (int i = 0; i < 3; ++i) Learn({});
  for (uint32_t k = 0; k < 40; ++k) follower_.Next({100000 + k, 9, k});  // something else
  const std::vector<uint32_t> answers = Follow({});
  size_t right = 0;
  for (size_t i = 0; i < answers.size(); ++i) right += answers[i] == truth_[i];
  EXPECT_GE(right + 3, answers.size());
  EXPECT_GT(follower_.figures().searches, 0u);
}

TEST_F(EnvelopeFollowerTest, HasAlternativesOfTheSize) {
  for (int i = 0; i < 3; ++i) Learn({});
  ASSERT_EQ(follower_.Next(job_.Sign(30)), truth_[0]);
  follower_.Placed(truth_[0]);
  const std::vector<uint32_t> others = follower_.Alternatives();
  for (const uint32_t other : others) {
    EXPECT_NE(other, truth_[0]) << "it is in use";
    EXPECT_TRUE(envelope_.entries()[other].HasSize(30));
  }
  follower_.Next({7, 1, 0});  // the size of each update
  EXPECT_GE(follower_.Alternatives().size(), 5u);
}

TEST_F(EnvelopeFollowerTest, AnEntryInUseIsNoCandidate) {
  for (int i = 0; i < 3; ++i) Learn({});
  const uint32_t first = truth_.front();
  follower_.Continue(MakeEnvelopeScript(envelope_, nullptr), {first});
  EXPECT_NE(follower_.Next(job_.Sign(30)), first);
  follower_.Continue(MakeEnvelopeScript(envelope_, nullptr), {first});
  follower_.Released(first);
  EXPECT_EQ(follower_.Next(job_.Sign(30)), first);
}

}  // namespace
}  // namespace hotpack
