// Jobs whose iterations differ, served by an envelope: what share of the requests gets its place.
#include "bench/envelope_player.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "gtest/gtest.h"
#include "profiler/trace_file.h"
#include "tests/property/random.h"
#include "tests/runtime/envelope_steps.h"

namespace hotpack {
namespace {

using hotpack_test::Layers;
using hotpack_test::PlayStep;

constexpr int kSteps = 40;
constexpr uint64_t kUnit = 512;

class Recorder {
 public:
  void Play(const Layers& layers) {
    PlayStep(
        layers, [this](uint32_t units) { return Request(units); }, [this](uint64_t id) { Release(id); });
  }
  uint64_t Request(uint32_t units) {
    Event event;
    event.kind = EventKind::kAllocate;
    event.id = ++last_;
    event.bytes = units * kUnit;
    trace_.events.push_back(event);
    return last_;
  }
  void Release(uint64_t id) {
    Event event;
    event.kind = EventKind::kRelease;
    event.id = id;
    trace_.events.push_back(event);
  }
  void Mark() {
    Event event;
    event.kind = EventKind::kMark;
    trace_.events.push_back(event);
  }
  const Trace& trace() const { return trace_; }

 private:
  Trace trace_;
  uint64_t last_ = 0;
};

// The share of planned requests from iteration `from` on.
double Planned(const EnvelopePlay& play, size_t from) {
  EnvelopeIterationFigures sum;
  for (size_t i = from; i < play.iterations.size(); ++i) sum += play.iterations[i];
  return static_cast<double>(sum.planned) / static_cast<double>(sum.requests);
}

// Each kind of step, drawn: all requests have a cause, and few plans are made.
EnvelopePlay PlaySteps(uint64_t seed, const std::function<void(int, property::Random*, Recorder*)>& step) {
  property::Random random(seed);
  Recorder recorder;
  for (int i = 0; i < kSteps; ++i) {
    step(i, &random, &recorder);
    recorder.Mark();
  }
  EnvelopeSettings options;
  options.pack_ns = 50'000'000;
  const EnvelopePlay play = PlayEnvelope(recorder.trace(), options);
  EXPECT_EQ(play.iterations.size(), static_cast<size_t>(kSteps));
  EXPECT_LE(static_cast<double>(play.plans.size()), 1 + std::log2(kSteps));
  for (const EnvelopeIterationFigures& each : play.iterations) {
    const uint64_t unplanned = each.unknown + each.unplaced + each.too_large + each.displaced;
    if (each.planned > 0) {
      EXPECT_EQ(each.planned + unplanned, each.requests);
    }
  }
  return play;
}

TEST(EnvelopePlayer, AJobThatRepeatsIsServedFromItsSecondIteration) {
  const EnvelopePlay play = PlaySteps(1, [](int, property::Random*, Recorder* r) { r->Play({}); });
  EXPECT_EQ(play.plans.size(), 1u);
  EXPECT_EQ(play.plans[0].height_units, play.plans[0].load_units);
  EXPECT_EQ(Planned(play, 2), 1.0);
}

TEST(EnvelopePlayer, LengthsChange) {
  const EnvelopePlay play = PlaySteps(2, [](int, property::Random* random, Recorder* r) {
    r->Play({.count = 12, .length = 100 + static_cast<uint32_t>(random->Below(100))});
  });
  EXPECT_GT(Planned(play, 5), 0.95);
  EXPECT_GT(Planned(play, kSteps * 2 / 3), 0.96);
}

TEST(EnvelopePlayer, LayersAreLeftOut) {
  const EnvelopePlay play = PlaySteps(3, [](int, property::Random* random, Recorder* r) {
    r->Play({.count = 12, .skipped = static_cast<int>(random->Below(24))});  // half of the steps are whole
  });
  EXPECT_GT(Planned(play, 5), 0.90);
  EXPECT_GT(Planned(play, kSteps * 2 / 3), 0.95);
}

TEST(EnvelopePlayer, EvaluationComesBetween) {
  const EnvelopePlay play = PlaySteps(4, [](int i, property::Random*, Recorder* r) {
    r->Play({.count = 8});
    if (i % 10 != 9) return;
    std::vector<uint64_t> blocks;
    for (uint32_t k = 0; k < 16; ++k) {  // twice the layers, forward only
      blocks.push_back(r->Request(25 * (k + 3)));
      if (k > 0) r->Release(blocks[k - 1]);
    }
    r->Release(blocks.back());
  });
  EXPECT_GT(Planned(play, 11), 0.98);
}

TEST(EnvelopePlayer, WithoutMarksNothingIsPlanned) {
  Recorder recorder;
  for (int i = 0; i < 3; ++i) recorder.Play({});
  const EnvelopePlay play = PlayEnvelope(recorder.trace());
  EXPECT_TRUE(play.plans.empty());
  EXPECT_TRUE(play.iterations.empty());
}

// A recurrent net whose sentences have other lengths in each step.
TEST(EnvelopePlayer, TheRecordedSequenceModel) {
  const char* const shared = getenv("HOTPACK_SHARED");
  const std::string path =
      std::string(shared != nullptr ? shared : HOTPACK_SOURCE_DIR "/../shared") + "/traces/seq2seqvar-train-b16.csv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no shared traces (set HOTPACK_SHARED)";
  absl::StatusOr<TraceFile> file = LoadTrace(path);
  ASSERT_TRUE(file.ok()) << file.status();
  int marks = 0;
  std::vector<Event>& events = file->trace.events;
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].kind == EventKind::kMark && ++marks == 16) events.resize(i + 1);
  }
  EnvelopeSettings options;
  options.pack_ns = 100'000'000;
  const EnvelopePlay play = PlayEnvelope(file->trace, options);
  EXPECT_GT(Planned(play, 5), 0.90);
  EXPECT_LE(static_cast<double>(play.plans.size()), 1 + std::log2(static_cast<double>(play.iterations.size())));
}

}  // namespace
}  // namespace hotpack
