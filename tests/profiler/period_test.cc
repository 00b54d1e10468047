#include "profiler/period.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/profiler/recorder.h"

namespace hotpack {
namespace {

uint64_t Seed() {
  const char* text = std::getenv("HOTPACK_TEST_SEED");
  uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
  std::printf("HOTPACK_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

TEST(MatchLengths, AgreesWithBruteForce) {
  std::mt19937_64 random(Seed());
  for (int round = 0; round < 2000; ++round) {
    uint64_t n = random() % 40;
    uint32_t kinds = 1 + random() % 3;
    std::vector<uint32_t> units(n);
    for (uint32_t& u : units) u = random() % kinds;
    if (round % 2 == 0 && n > 6) {  // repetitions, so that the long matches are met
      uint64_t p = 1 + random() % (n / 2);
      for (uint64_t i = p; i < n; ++i) units[i] = units[i - p];
      if (random() % 2) units[random() % n] ^= 1;
    }
    std::vector<uint32_t> matches = MatchLengths(units);
    ASSERT_EQ(matches.size(), n);
    for (uint64_t p = 1; p < n; ++p) {
      uint32_t length = 0;
      while (length + p < n && units[n - 1 - length] == units[n - 1 - length - p]) ++length;
      ASSERT_EQ(matches[p], length) << "p=" << p << " n=" << n;
    }
  }
}

TEST(FindPeriod, NothingInNothing) {
  Recorder recorder;
  EXPECT_EQ(FindPeriod(recorder.Tail()).length, 0u);
  recorder.Touch(5);
  EXPECT_EQ(FindPeriod(recorder.Tail()).length, 0u);
}

TEST(FindPeriod, TwoOccurrencesAreEnoughAndOneIsNot) {
  Recorder recorder;
  auto iteration = [&] {
    for (uint32_t i = 1; i <= 30; ++i) recorder.Touch(i);
  };
  iteration();
  EXPECT_EQ(FindPeriod(recorder.Tail()).length, 0u);
  iteration();
  Period period = FindPeriod(recorder.Tail());
  EXPECT_EQ(period.length, 30u);
  EXPECT_EQ(period.run, 30u);
  for (int i = 0; i < 3; ++i) iteration();
  period = FindPeriod(recorder.Tail());
  EXPECT_EQ(period.length, 30u);  // and not 60
  EXPECT_EQ(period.run, 120u);
}

TEST(FindPeriod, NotInNoise) {
  std::mt19937_64 random(Seed());
  Recorder recorder;
  for (int i = 0; i < 5000; ++i) recorder.Touch(1 + random() % 1'000'000);
  EXPECT_EQ(FindPeriod(recorder.Tail()).length, 0u);
}

// Inference through 96 equal layers: the layers repeat, and so does the whole.
TEST(FindPeriod, TheWholeIterationWinsOverItsLayersOnceSeenTwice) {
  Recorder recorder;
  constexpr uint64_t kLayers = 96, kRequests = 2 + 3 * kLayers;
  auto iteration = [&](bool first) {
    uint64_t x = recorder.Ask(1000), out = recorder.Ask(40);
    for (uint64_t l = 0; l < kLayers; ++l) {
      uint64_t a = recorder.Ask(10), b = recorder.Ask(20);
      recorder.Give(a);
      uint64_t next = recorder.Ask(40);
      recorder.Give(b);
      recorder.Give(out);
      out = next;
      if (first && l == 80) {
        EXPECT_EQ(FindPeriod(recorder.Tail()).length, 3u);  // all that is known so far
      }
    }
    recorder.Give(out);
    recorder.Give(x);
  };
  iteration(true);
  iteration(false);
  EXPECT_EQ(FindPeriod(recorder.Tail()).length, kRequests);
  iteration(false);
  EXPECT_EQ(FindPeriod(recorder.Tail()).length, kRequests);
}

// A recurrent network: 60 equal steps forward keep their blocks, 60 backward release them. Neither is an iteration.
class TimeSteps : public ::testing::Test {
 protected:
  static constexpr int kSteps = 60;
  void Forward(int steps) {
    for (int s = 0; s < steps; ++s) {
      for (uint32_t units : {8u, 8u, 16u}) kept_.push_back(recorder_.Ask(units));
      recorder_.Touch(4);
    }
  }
  void Backward(int steps) {
    for (int s = 0; s < steps; ++s) {
      uint64_t gradient = recorder_.Ask(24);
      for (int k = 0; k < 3; ++k) {
        recorder_.Give(kept_.back());
        kept_.pop_back();
      }
      recorder_.Touch(6);
      recorder_.Give(gradient);
    }
  }
  Recorder recorder_;
  std::vector<uint64_t> kept_;
};

TEST_F(TimeSteps, AreNotTakenForIterations) {
  for (int iteration = 0; iteration < 1; ++iteration) {
    for (int s = 0; s < kSteps; ++s) {
      Forward(1);
      EXPECT_EQ(FindPeriod(recorder_.Tail()).length, 0u) << "forward " << s;
    }
    for (int s = 0; s < kSteps; ++s) {
      Backward(1);
      EXPECT_EQ(FindPeriod(recorder_.Tail()).length, 0u) << "backward " << s;
    }
  }
  Forward(kSteps);
  Backward(kSteps);
  EXPECT_EQ(FindPeriod(recorder_.Tail()).length, uint64_t{kSteps} * 6);
}

TEST_F(TimeSteps, AreNotTakenForIterationsInALaterIterationEither) {
  for (int iteration = 0; iteration < 3; ++iteration) {
    Forward(kSteps);
    Backward(kSteps);
  }
  for (int s = 1; s < kSteps; ++s) {
    Forward(1);
    Period period = FindPeriod(recorder_.Tail());
    EXPECT_TRUE(period.length == 0 || period.length == uint64_t{kSteps} * 6) << period.length << " after step " << s;
  }
}

// Requests before the repetition do not hinder it forever.
TEST(FindPeriod, ALongStartIsForgottenAfterSixteenOccurrences) {
  Recorder recorder;
  std::mt19937_64 random(7);
  for (int i = 0; i < 4000; ++i) recorder.Touch(1 + random() % 100000);
  auto iteration = [&] {
    for (uint32_t i = 1; i <= 20; ++i) recorder.Touch(i);
  };
  for (int i = 0; i < 15; ++i) iteration();
  EXPECT_EQ(FindPeriod(recorder.Tail()).length, 0u);
  iteration();
  EXPECT_EQ(FindPeriod(recorder.Tail()).length, 20u);
}

// The end of the history may lie anywhere in the iteration.
TEST(FindPeriod, AtAnyPlaceInTheIteration) {
  Recorder recorder;
  std::vector<uint64_t> live;
  for (int i = 0; i < 3; ++i) {
    for (uint32_t k = 0; k < 25; ++k) {
      if (i == 2) {
        Period period = FindPeriod(recorder.Tail());
        EXPECT_EQ(period.length, 25u) << k;
        EXPECT_EQ(period.run, 25u + k);
      }
      recorder.Touch(100 + k * k % 17);
    }
  }
}

}  // namespace
}  // namespace hotpack
