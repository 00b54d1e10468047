#include "packer/portfolio.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "packer/arc_index.h"
#include "packer/best_fit.h"
#include "packer/first_fit.h"
#include "packer/keys.h"
#include "packer/random.h"
#include "packer/skyline.h"
#include "packer/squeaky.h"
#include "packer/stop.h"

namespace hotpack {
namespace {

// Dives with these come first: on most recorded training iterations one of them, or the published order before them, is
// at the lower bound. The best of them is what the squeaky wheel begins with.
constexpr Key kDiveKeys[] = {{0.125, 0, 0}, {0.375, 3, 0}, {0.25, 0, 0}, {0.5, 3, 0}};

// First-fit wins seldom (on some random instances, never on recorded iterations) and takes as long as several dives.
constexpr Key kFirstFitKeys[] = {{1.0, 0, 0}, {0.75, 0, 0}, {1.0, 3, 0}, {0.0, 3, 0}, {0.75, 3, 0}, {0.125, 0, 0}};
constexpr size_t kFirstFitAfter = 48;  // dives of the squeaky wheel
constexpr size_t kFirstFitEvery = 64;

// Dives without success until the squeaky wheel begins anew, more each time.
constexpr size_t kQuickPatience = 128;
constexpr size_t kLongPatience = 1024;

// What the threads share.
class Shared {
 public:
  Shared(const Timeline& the_timeline, const PackOptions& the_options, Bytes target, int64_t deadline,
         Incumbent* incumbent)
      : timeline(the_timeline),
        scorer(the_timeline),
        index(the_timeline),
        options(the_options),
        deadline_ns(deadline),
        target_(target),
        incumbent_(incumbent),
        height_(incumbent->placement.height) {}

  // Of the best placement so far. A solver is told to give up when it cannot be lower than this.
  Bytes height() const { return height_.load(std::memory_order_relaxed); }
  bool reached() const { return height() <= target_; }
  Bytes target() const { return target_; }
  size_t NextFirstFitKey() { return next_first_fit_key_.fetch_add(1, std::memory_order_relaxed); }
  size_t NextDiveKey() { return next_dive_key_.fetch_add(1, std::memory_order_relaxed); }

  void Offer(Placement* placement, const char* algorithm) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (placement->height >= incumbent_->placement.height) return;
    std::swap(incumbent_->placement, *placement);
    incumbent_->algorithm = algorithm;
    height_.store(incumbent_->placement.height, std::memory_order_relaxed);
  }

  const Timeline& timeline;
  const KeyScorer scorer;
  const ArcIndex index;
  const PackOptions& options;
  const int64_t deadline_ns;

 private:
  const Bytes target_;
  std::mutex mutex_;
  Incumbent* const incumbent_;  // guarded by mutex_
  std::atomic<Bytes> height_;
  std::atomic<size_t> next_dive_key_{0};
  std::atomic<size_t> next_first_fit_key_{0};
};

// One thread's solvers and its state of the search.
class Worker {
 public:
  Worker(Shared* shared, int index)
      : shared_(*shared),
        stop_(shared->deadline_ns, shared->options.cancel),
        random_(shared->options.seed * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(index)),
        skyline_(shared->timeline),
        first_fit_(shared->timeline),
        wheel_(shared->timeline, shared->index, &skyline_, random_.Next()) {}

  void RunPublished() {
    ranks_ = BestFitRanks(shared_.timeline);
    Dive(AlgorithmName(Algorithm::kBestFit));
  }

  void Run() {
    size_t key;
    while (!Finished() && (key = shared_.NextDiveKey()) < std::size(kDiveKeys)) RunDive(kDiveKeys[key]);
    for (size_t episode = 0; !Finished(); ++episode) {
      const bool quick = episode % 2 == 0;
      wheel_.Begin(StartScores(episode), quick ? SqueakyWheel::Growth::kQuick : SqueakyWheel::Growth::kPatient);
      RunWheel((quick ? kQuickPatience : kLongPatience) << std::min<size_t>(episode / 2, 16));
    }
  }

 private:
  bool Finished() { return shared_.reached() || stop_.Now(); }

  void RunDive(const Key& key) {
    shared_.scorer.Score(key, &random_, &scores_);
    SortByScore(scores_, &order_, &ranks_);
    if (Dive("skyline") || best_scores_.empty()) best_scores_ = scores_;
  }

  // What was best so far; each fourth time something random.
  const std::vector<double>& StartScores(size_t episode) {
    if (episode % 4 != 3 && !best_scores_.empty()) return best_scores_;
    const Key key{0.75 * random_.Unit(), random_.Unit() < 0.5 ? 0 : 8 * random_.Unit(),
                  std::exp(-5 + 5 * random_.Unit())};
    shared_.scorer.Score(key, &random_, &scores_);
    return scores_;
  }

  void RunWheel(size_t patience) {
    for (size_t failures = 0; failures < patience && !Finished(); ++failures) {
      if (wheel_dives_++ % kFirstFitEvery == kFirstFitAfter) RunFirstFit();
      if (Finished()) return;
      if (!wheel_.Dive(shared_.target(), shared_.height(), &stop_, &placement_)) continue;
      shared_.Offer(&placement_, "squeaky-wheel");
      best_scores_ = wheel_.scores();
      failures = 0;
    }
  }

  bool Dive(const char* name) {
    if (!skyline_.Dive(ranks_, shared_.height() - 1, &stop_, &placement_.offsets, &placement_.height)) return false;
    shared_.Offer(&placement_, name);
    return true;
  }

  // With a fixed key, then with noisy ones.
  void RunFirstFit() {
    const size_t next = shared_.NextFirstFitKey();
    Key key = kFirstFitKeys[next % std::size(kFirstFitKeys)];
    if (next >= std::size(kFirstFitKeys)) key.noise = std::exp(-5 + 5 * random_.Unit());
    shared_.scorer.Score(key, &random_, &scores_);
    SortByScore(scores_, &order_, &ranks_);
    if (!first_fit_.Place(order_, shared_.height() - 1, &stop_, &placement_.offsets, &placement_.height)) return;
    shared_.Offer(&placement_, AlgorithmName(Algorithm::kFirstFit));
  }

  Shared& shared_;
  StopCheck stop_;
  Random random_;
  Skyline skyline_;
  FirstFit first_fit_;
  SqueakyWheel wheel_;
  size_t wheel_dives_ = 0;
  Placement placement_;
  std::vector<double> scores_;
  std::vector<double> best_scores_;  // of the last success, or of the first fixed key
  std::vector<int32_t> order_;
  std::vector<int32_t> ranks_;
};

// Helper threads that cannot be started, or run out of memory, are done without.
void RunHelper(Shared* shared, int index) {
  try {
    Worker(shared, index).Run();
  } catch (const std::bad_alloc&) {
  }
}

// Joins on every way out, an exception in the calling thread included.
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

void RunPortfolio(const Timeline& timeline, const PackOptions& options, Bytes lower_bound, int64_t deadline_ns,
                  Incumbent* incumbent) {
  const Bytes target = std::max(lower_bound, options.capacity);
  if (incumbent->placement.height <= target) return;
  Shared shared(timeline, options, target, deadline_ns, incumbent);
  Worker worker(&shared, 0);
  worker.RunPublished();
  if (shared.reached()) return;
  const Helpers helpers(&shared, options.threads);
  worker.Run();
}

}  // namespace hotpack
