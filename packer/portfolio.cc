#include "packer/portfolio.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "packer/arc_index.h"
#include "packer/exact_solver.h"
#include "packer/first_fit.h"
#include "packer/keys.h"
#include "packer/random.h"
#include "packer/skyline.h"
#include "packer/squeaky.h"
#include "packer/stop.h"

namespace hotpack {
namespace {

// The first dives use these keys. On most recorded training iterations one of them, or the published order before them,
// reaches the lower bound. The squeaky wheel begins with the best of them.
constexpr Key kDiveKeys[] = {{0.125, 0, 0}, {0.375, 3, 0}, {0.25, 0, 0}, {0.5, 3, 0}};

// First-fit seldom wins (on some random instances, never on recorded iterations) and takes as long as several dives.
constexpr Key kFirstFitKeys[] = {{1.0, 0, 0}, {0.75, 0, 0}, {1.0, 3, 0}, {0.0, 3, 0}, {0.75, 3, 0}, {0.125, 0, 0}};
constexpr size_t kFirstFitAfter = 48;  // dives of the squeaky wheel
constexpr size_t kFirstFitEvery = 64;
constexpr int64_t kFirstFitShare = 20;  // of the work, at most about so little

// Dives without success until the squeaky wheel restarts; the number grows.
constexpr size_t kQuickPatience = 128;
constexpr size_t kLongPatience = 1024;

// The first turn of the wheel and of the exact search, in memory words touched per block. Each turn is twice as long as
// the last, so at most about half of the time is spent on the unsuccessful one.
constexpr int64_t kFirstTurn = 2'048;

// State shared by the threads.
struct Shared {
  Shared(const Timeline& the_timeline, const PackOptions& the_options, int64_t the_deadline_ns, SharedBest* the_best)
      : timeline(the_timeline),
        scorer(the_timeline),
        index(the_timeline),
        options(the_options),
        deadline_ns(the_deadline_ns),
        exact_takes_it(ExactSolver::Takes(the_timeline, the_options.algorithm == Algorithm::kExact
                                                            ? ExactSolver::kMaxPairs
                                                            : ExactSolver::kFewPairs)),
        least_exact_turn(exact_takes_it ? ExactSolver::WorkOfOneDescent(the_timeline) : 0),
        best(*the_best) {}

  const Timeline& timeline;
  const KeyScorer scorer;
  const ArcIndex index;
  const PackOptions& options;
  const int64_t deadline_ns;
  const bool exact_takes_it;
  const int64_t least_exact_turn;
  SharedBest& best;
  std::atomic<size_t> next_dive_key{0};
  std::atomic<size_t> next_first_fit_key{0};
};

// One thread's heuristics and its state of the search.
class Heuristics {
 public:
  Heuristics(Shared* shared, int index, StopCheck* stop)
      : shared_(*shared),
        stop_(*stop),
        random_(shared->options.seed * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(index)),
        skyline_(shared->timeline),
        first_fit_(shared->timeline),
        wheel_(shared->timeline, shared->index, &skyline_, random_.Next()) {}

  void RunFixedKeys() {
    for (size_t key; !Finished() && (key = shared_.next_dive_key.fetch_add(1)) < std::size(kDiveKeys);) {
      shared_.scorer.Score(kDiveKeys[key], &random_, &scores_);
      SortByScore(scores_, &order_, &ranks_);
      if (Dive() || best_scores_.empty()) best_scores_ = scores_;
    }
  }

  // Runs the squeaky wheel until `work` is spent.
  void RunWheel(int64_t work) {
    const int64_t end = stop_.total_work() + work;
    while (stop_.total_work() < end && !Finished()) {
      if (failures_ >= patience_) BeginEpisode();
      if (wheel_dives_++ % kFirstFitEvery == kFirstFitAfter) RunFirstFit();
      if (Finished()) return;
      ++failures_;
      if (!wheel_.Dive(shared_.best.target(), shared_.best.height(), &stop_, &placement_)) continue;
      shared_.best.Offer(&placement_, "squeaky-wheel");
      best_scores_ = wheel_.scores();
      failures_ = 0;
    }
  }

 private:
  bool Finished() { return shared_.best.done() || stop_.Now(); }

  bool Dive() {
    if (!skyline_.Dive(ranks_, shared_.best.height() - 1, &stop_, &placement_.offsets, &placement_.height))
      return false;
    shared_.best.Offer(&placement_, "skyline");
    return true;
  }

  void BeginEpisode() {
    const bool quick = episodes_ % 2 == 0;
    wheel_.Begin(StartScores(), quick ? SqueakyWheel::Steps::kSmall : SqueakyWheel::Steps::kLarge);
    failures_ = 0;
    patience_ = (quick ? kQuickPatience : kLongPatience) << std::min<size_t>(episodes_ / 2, 16);
    ++episodes_;
  }

  // Returns the best scores so far; every fourth time, random ones.
  const std::vector<double>& StartScores() {
    if (episodes_ % 4 != 3 && !best_scores_.empty()) return best_scores_;
    const Key key{0.75 * random_.Unit(), random_.Unit() < 0.5 ? 0 : 8 * random_.Unit(),
                  std::exp(-5 + 5 * random_.Unit())};
    shared_.scorer.Score(key, &random_, &scores_);
    return scores_;
  }

  // Runs first-fit with a fixed key, later with noisy ones.
  void RunFirstFit() {
    // In large instances one takes as long as many dives.
    if (first_fit_work_ * kFirstFitShare > stop_.total_work()) return;
    const int64_t before = stop_.total_work();
    const size_t next = shared_.next_first_fit_key.fetch_add(1);
    Key key = kFirstFitKeys[next % std::size(kFirstFitKeys)];
    if (next >= std::size(kFirstFitKeys)) key.noise = std::exp(-5 + 5 * random_.Unit());
    shared_.scorer.Score(key, &random_, &scores_);
    SortByScore(scores_, &order_, &ranks_);
    const bool lower =
        first_fit_.Place(order_, shared_.best.height() - 1, &stop_, &placement_.offsets, &placement_.height);
    first_fit_work_ += stop_.total_work() - before;
    if (!lower) return;
    shared_.best.Offer(&placement_, AlgorithmName(Algorithm::kFirstFit));
  }

  Shared& shared_;
  StopCheck& stop_;
  Random random_;
  Skyline skyline_;
  FirstFit first_fit_;
  SqueakyWheel wheel_;
  int64_t first_fit_work_ = 0;
  size_t wheel_dives_ = 0;
  size_t episodes_ = 0;
  size_t failures_ = 0;  // dives of the wheel since its last success
  size_t patience_ = 0;  // this many end an episode
  Placement placement_;
  std::vector<double> scores_;
  std::vector<double> best_scores_;  // of the last success, or of the first fixed key
  std::vector<int32_t> order_;
  std::vector<int32_t> ranks_;
};

// The work of one thread.
void RunThread(Shared* shared, int index) {
  StopCheck stop(shared->deadline_ns, shared->options.cancel, shared->options.clock);
  SharedBest& best = shared->best;
  std::optional<Heuristics> heuristics;
  if (shared->options.algorithm == Algorithm::kAuto) {
    heuristics.emplace(shared, index, &stop);
    heuristics->RunFixedKeys();
  }
  if (best.done() || stop.Now()) return;
  std::optional<ExactSolver> exact;
  int wheel_halvings = 0;
  for (int64_t turn = kFirstTurn * shared->timeline.blocks();
       (heuristics || shared->exact_takes_it) && !best.done() && !stop.Now(); turn *= 2) {
    const Bytes at_first = best.height();
    if (heuristics) heuristics->RunWheel(turn >> wheel_halvings);
    const Bytes after_wheel = best.height();
    if (!shared->exact_takes_it || best.done() || stop.Now()) continue;
    if (heuristics && turn < shared->least_exact_turn) continue;
    if (!exact) exact.emplace(shared->timeline, shared->options.seed, index, &best, &stop);
    exact->Run(turn, &stop);
    // If only the exact search makes progress, the wheel's turns become shorter, down to an eighth.
    if (after_wheel < at_first) {
      wheel_halvings = 0;
    } else if (best.height() < after_wheel) {
      wheel_halvings = std::min(wheel_halvings + 1, 3);
    }
  }
}

// Continues without helper threads that cannot be started or run out of memory.
void RunHelper(Shared* shared, int index) {
  try {
    RunThread(shared, index);
  } catch (const std::bad_alloc&) {
  }
}

// Joins the threads on every exit, including an exception in the calling thread.
class Helpers {
 public:
  Helpers(Shared* shared, int threads) {
    for (int index = 1; index < threads; ++index) {
      try {
        threads_.emplace_back(RunHelper, shared, index);
      } catch (const std::system_error&) {
        break;
      }
    }
  }
  ~Helpers() {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace

void RunPortfolio(const Timeline& timeline, const PackOptions& options, int64_t deadline_ns, SharedBest* best) {
  if (best->done()) return;
  Shared shared(timeline, options, deadline_ns, best);
  const Helpers helpers(&shared, options.clock != nullptr ? 1 : options.threads);
  RunThread(&shared, 0);
}

}  // namespace hotpack
