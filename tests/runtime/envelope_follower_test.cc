// The follower of an envelope: which entry it takes for a request.
#include "runtime/script/envelope_follower.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

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

// Look answers as Next does, as often as it is asked, and Go goes on like Next. `other` always uses Next.
TEST_F(EnvelopeFollowerTest, LookAndGoAreNext) {
  for (const int skipped : {-1, 2, -1, 4}) Learn({.skipped = skipped});
  EnvelopeFollower other = follower_;
  const auto before = follower_.figures();
  EnvelopeFollower::Hypothesis next;
  const auto ask = [&](uint32_t units) {
    const RequestSign sign = job_.Sign(units);
    follower_.Look({99, 3, 17});
    follower_.Look(sign);
    const bool expected = follower_.Expects(sign, &next);
    const uint32_t entry = expected ? next.entry : follower_.Look(sign);
    if (expected) {
      follower_.Follow(next, sign);
    } else {
      follower_.Go(sign);
    }
    EXPECT_EQ(other.Next(sign), entry);
    for (EnvelopeFollower* each : {&follower_, &other}) {
      if (entry != kNone) each->Placed(entry);
    }
    return std::pair(job_.Request(units, entry), entry);
  };
  const auto release = [&](const std::pair<uint64_t, uint32_t>& block) {
    job_.Release(block.first);
    for (EnvelopeFollower* each : {&follower_, &other}) {
      if (block.second != kNone) each->Released(block.second);
    }
  };
  for (const Layers& layers : {Layers{.skipped = 2}, Layers{.skipped = 5}, Layers{.count = 5, .length = 12}}) {
    PlayStep(layers, ask, release);
    for (uint32_t k = 0; k < 5; ++k) ask(1000 + k);  // of no entry
  }
  const auto after = follower_.figures();
  EXPECT_GT(after.searches, before.searches);
  EXPECT_GT(after.expected, before.expected);
  EXPECT_EQ(after.searches, other.figures().searches);
  EXPECT_EQ(after.beam, other.figures().beam);
}

// What Look has found holds until a block is placed or released.
TEST_F(EnvelopeFollowerTest, LookSeesWhatIsInUseMeanwhile) {
  for (int i = 0; i < 3; ++i) Learn({});
  const RequestSign sign = job_.Sign(30);
  ASSERT_EQ(follower_.Look(sign), truth_[0]);
  follower_.Placed(truth_[0]);
  EXPECT_NE(follower_.Look(sign), truth_[0]);
  follower_.Released(truth_[0]);
  EXPECT_EQ(follower_.Look(sign), truth_[0]);
}

// Every second layer is alike, and the forward pass begins at layer 5 or 6, or ends earlier or later. What a search
// compares are requests of layers whose blocks still live.
TEST_F(EnvelopeFollowerTest, FindsItsWayAmongLiveBlocks) {
  const auto play = [&](uint32_t from, uint32_t end, auto ask, auto release) {
    std::vector<decltype(ask(0u))> live;
    for (uint32_t layer = from; layer < end; ++layer) {
      live.push_back(ask(10 + layer % 2));
      live.push_back(ask(20 + layer / 2 % 2));
    }
    for (size_t k = live.size(); k-- > 0;) {
      const auto gradient = ask(40 + static_cast<uint32_t>(k) % 2);
      release(live[k]);
      release(gradient);
    }
  };
  const auto end = [&] {
    truth_ = job_.End(&envelope_);
    follower_.Start(MakeEnvelopeScript(envelope_, nullptr), {});
  };
  for (int i = 0; i < 3; ++i) {
    play(
        0, 12, [&](uint32_t units) { return job_.Request(units); }, [&](uint64_t block) { job_.Release(block); });
    end();
  }
  size_t right = 0, all = 0;
  for (const auto& [first, last] : std::vector<std::pair<uint32_t, uint32_t>>{{5, 12}, {0, 8}, {6, 12}, {0, 14}}) {
    std::vector<uint32_t> answers;
    play(
        first, last,
        [&](uint32_t units) {
          answers.push_back(follower_.Next(job_.Sign(units)));
          if (answers.back() != kNone) follower_.Placed(answers.back());
          return std::pair(job_.Request(units, answers.back()), answers.back());
        },
        [&](const std::pair<uint64_t, uint32_t>& block) {
          job_.Release(block.first);
          if (block.second != kNone) follower_.Released(block.second);
        });
    end();
    all += answers.size();
    for (size_t i = 0; i < answers.size(); ++i) right += answers[i] == truth_[i];
  }
  EXPECT_GE(right * 100, all * 57) << right << " of " << all;
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

// The place of a short life is soon asked for by others. A loop may have many.
TEST_F(EnvelopeFollowerTest, AlternativesThatLiveAsLongComeFirst) {
  constexpr int kTurns = 60;
  for (int i = 0; i < 3; ++i) {
    std::vector<uint64_t> kept;
    for (int t = 0; t < kTurns; ++t) {
      kept.push_back(job_.Request(30));
      job_.Release(job_.Request(30));
    }
    for (const uint64_t block : kept) job_.Release(block);
    truth_ = job_.End(&envelope_);
  }
  follower_.Start(MakeEnvelopeScript(envelope_, nullptr), {});
  ASSERT_EQ(follower_.Next(job_.Sign(30)), truth_[0]);
  follower_.Placed(truth_[0]);
  const std::vector<uint32_t> others = follower_.Alternatives();
  ASSERT_EQ(others.size(), 2u * kTurns - 1);
  const int life = envelope_.entries()[truth_[0]].life;
  EXPECT_TRUE(std::is_partitioned(others.begin(), others.end(),
                                  [&](uint32_t entry) { return envelope_.entries()[entry].life >= life; }));
  EXPECT_LT(envelope_.entries()[others.back()].life, life);
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

// The last ones in the sequence come first, since a job goes on more often than back.
TEST(EnvelopeIndexTest, FindsEntriesByTheirKey) {
  EnvelopeIndex index;
  EXPECT_TRUE(index.Find(1).empty());
  for (const auto& [key, entry] : std::vector<std::pair<uint64_t, uint32_t>>{{9, 4}, {1, 7}, {9, 2}, {UINT64_MAX, 1}}) {
    index.Add(key, entry);
  }
  index.Finish();
  const auto found = [&](uint64_t key) { return std::vector(index.Find(key).begin(), index.Find(key).end()); };
  EXPECT_EQ(found(9), (std::vector<uint32_t>{2, 4}));
  EXPECT_EQ(found(1), (std::vector<uint32_t>{7}));
  EXPECT_EQ(found(UINT64_MAX), (std::vector<uint32_t>{1}));
  EXPECT_TRUE(found(0).empty());
  EXPECT_TRUE(found(8).empty());
}

// At each fork the chances are those of the weights in its branches.
TEST_F(EnvelopeFollowerTest, TheChancesOfAForkAreThoseOfItsBranches) {
  for (const int skipped : {-1, 2, -1, 4, -1, 2, 2, -1}) Learn({.skipped = skipped});
  const auto script = MakeEnvelopeScript(envelope_, nullptr);
  size_t forks = 0;
  for (uint32_t e = 0; e < script->entries.size(); ++e) {
    const auto& successors = envelope_.entries()[e].successors;
    const EnvelopeFork& fork = script->forks[e];
    ASSERT_EQ(fork.choices, successors.size());
    double chances = 0;  // of a branch that was not seen
    for (uint32_t i = 0; i < fork.choices; ++i) {
      const EnvelopeChoice& choice = script->choices[fork.first_choice + i];
      EXPECT_EQ(choice.entry, successors[i].entry);
      EXPECT_EQ(
          EnvelopeScript::NextBranch(fork, choice, 77),
          EnvelopeBranch(envelope_.entries()[e], envelope_.positions()[e], envelope_.positions()[choice.entry], 77));
      chances += std::exp2(choice.chance);
    }
    if (fork.choices > 0) {
      EXPECT_GE(chances, 0.999);
    }
    if (fork.choices < 2) continue;
    ++forks;
    for (uint32_t row = 0; row < fork.branches; ++row) {
      const uint32_t branch = script->branches[fork.first_branch + row];
      double likeliest = -100, heaviest = 0;
      uint32_t likely = 0, heavy = 0;
      for (uint32_t i = 0; i < fork.choices; ++i) {
        const double chance = script->chances[fork.first_chance + size_t{row} * fork.choices + i];
        EXPECT_LE(chance, 0);
        if (chance > likeliest) {
          likely = i;
          likeliest = chance;
        }
        for (const auto& [seen, weight] : successors[i].by_branch) {
          if (seen != branch || weight <= heaviest) continue;
          heavy = i;
          heaviest = weight;
        }
      }
      if (heaviest > 1.5) {
        EXPECT_EQ(likely, heavy) << e;
      }
    }
  }
  EXPECT_GT(forks, 0u);
}

}  // namespace
}  // namespace hotpack
