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

#include "packer/best_fit.h"
#include "packer/first_fit.h"
#include "packer/keys.h"
#include "packer/random.h"
#include "packer/skyline.h"
#include "packer/stop.h"

namespace hotpack {
namespace {

// Tried in this order before anything random. On recorded training iterations most are at the lower bound after the
// published order or the first two of these.
constexpr Key kFixedKeys[] = {
    {0.125, 0, 0}, {0.25, 0, 0},  {0.375, 0, 0}, {0.5, 0, 0},   {0.125, 3, 0}, {0.25, 3, 0}, {0.375, 3, 0}, {0.5, 3, 0},
    {0.0, 0, 0},   {0.625, 0, 0}, {0.75, 0, 0},  {0.875, 0, 0}, {1.0, 0, 0},   {0.0, 3, 0},  {0.75, 3, 0},  {1.0, 3, 0},
};

// What the threads share.
class Shared {
 public:
  Shared(const Timeline& the_timeline, const PackOptions& the_options, Bytes target, int64_t deadline,
         Incumbent* incumbent)
      : timeline(the_timeline),
        scorer(the_timeline),
        options(the_options),
        deadline_ns(deadline),
        target_(target),
        incumbent_(incumbent),
        height_(incumbent->placement.height) {}

  // Of the best placement so far. A solver is told to give up when it cannot be lower than this.
  Bytes height() const { return height_.load(std::memory_order_relaxed); }
  bool reached() const { return height() <= target_; }
  size_t NextFixedKey() { return next_fixed_key_.fetch_add(1, std::memory_order_relaxed); }

  void Offer(Placement* placement, const char* algorithm) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (placement->height >= incumbent_->placement.height) return;
    std::swap(incumbent_->placement, *placement);
    incumbent_->algorithm = algorithm;
    height_.store(incumbent_->placement.height, std::memory_order_relaxed);
  }

  const Timeline& timeline;
  const KeyScorer scorer;
  const PackOptions& options;
  const int64_t deadline_ns;

 private:
  const Bytes target_;
  std::mutex mutex_;
  Incumbent* const incumbent_;  // guarded by mutex_
  std::atomic<Bytes> height_;
  std::atomic<size_t> next_fixed_key_{0};
};

// One thread's solvers and its state of the search.
class Worker {
 public:
  Worker(Shared* shared, int index)
      : shared_(*shared),
        stop_(shared->deadline_ns, shared->options.cancel),
        random_(shared->options.seed * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(index)),
        skyline_(shared->timeline),
        first_fit_(shared->timeline) {}

  void RunPublished() {
    ranks_ = BestFitRanks(shared_.timeline);
    Dive(AlgorithmName(Algorithm::kBestFit));
  }

  void Run() {
    for (size_t round = 0; !Finished(); ++round) {
      const bool fixed = NextScores(round);
      SortByScore(scores_, &order_, &ranks_);
      bool better = Dive("skyline");
      // First-fit wins seldom (much on random instances, never on recorded iterations), and costs more than a dive.
      if (!Finished() && (fixed || round % kFirstFitEvery == 0)) better = RunFirstFit() || better;
      if (better) best_scores_ = scores_;
    }
  }

 private:
  static constexpr size_t kFirstFitEvery = 4;

  bool Finished() { return shared_.reached() || stop_.Now(); }

  // True for one of the fixed keys. Then alternately a random key and a variation of the last one that was a success.
  bool NextScores(size_t round) {
    if (const size_t next = shared_.NextFixedKey(); next < std::size(kFixedKeys)) {
      shared_.scorer.Score(kFixedKeys[next], &random_, &scores_);
      return true;
    }
    if (round % 2 == 1 && !best_scores_.empty()) {
      scores_ = best_scores_;
      const double noise = std::exp(-6 + 6 * random_.Unit());
      const double probability = random_.Unit() < 0.5 ? 1.0 : random_.Unit();
      shared_.scorer.Perturb(noise, probability, &random_, &scores_);
    } else {
      shared_.scorer.Score(RandomKey(), &random_, &scores_);
    }
    return false;
  }

  Key RandomKey() {
    Key key;
    key.alpha = 0.75 * random_.Unit();
    key.load = random_.Unit() < 0.5 ? 0 : 8 * random_.Unit();
    key.noise = std::exp(-5 + 6 * random_.Unit());
    return key;
  }

  bool Dive(const char* name) {
    if (!skyline_.Dive(ranks_, shared_.height() - 1, &stop_, &placement_.offsets, &placement_.height)) return false;
    shared_.Offer(&placement_, name);
    return true;
  }

  bool RunFirstFit() {
    if (!first_fit_.Place(order_, shared_.height() - 1, &stop_, &placement_.offsets, &placement_.height)) return false;
    shared_.Offer(&placement_, AlgorithmName(Algorithm::kFirstFit));
    return true;
  }

  Shared& shared_;
  StopCheck stop_;
  Random random_;
  Skyline skyline_;
  FirstFit first_fit_;
  Placement placement_;
  std::vector<double> scores_;
  std::vector<double> best_scores_;
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
