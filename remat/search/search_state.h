// The work of remat/search/search.h, for its sources alone.
//
//   search.cc         rounds of changes
//   search_begin.cc   plans to begin with
//   search_cuts.cc    and those of least cuts
#pragma once

#include <chrono>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "remat/core/point_cut.h"
#include "remat/search/search.h"

namespace hotpack::remat {

// Gaps of layers alike: the same gap of results of operators of the same name. By gap its class; and each class's gaps,
// in the program's order.
struct AlikeGaps {
  std::vector<int32_t> of;
  std::vector<std::vector<GapId>> gaps;
};

class Search::State {
 public:
  State(const Graph& graph, const Values& values, const Machine& machine)
      : graph_(graph),
        values_(values),
        fitter_(graph, values, machine),
        total_(TotalCost(graph)),
        hold_(values.gaps.size()) {}
  Found Run(const SearchOptions& options);

 private:
  static size_t At(int32_t id) { return static_cast<size_t>(id); }

  // What gives a plan again.
  struct Recipe {
    FitOptions options;
    Decisions choice;
    std::vector<bool> hold;
  };
  struct Standing {
    Decisions choice;
    Bytes over = INT64_MAX;
    Nanoseconds time = INT64_MAX;
    Fetching fetching = Fetching::kWithRoom;
    bool IsThere() const { return over < INT64_MAX; }
    bool IsWorseThan(const BudgetFit& other, Nanoseconds worse) const {
      return std::pair(other.over, other.time) <= std::pair(over, over > other.over ? INT64_MAX : time + worse);
    }
  };

  // What is used up and stays so that others can be made again from it: results of heavy operators, of those that cost
  // more than what goes, or whatever it is.
  enum class Sources : uint8_t { kNone, kHeavy, kCostlier, kAll };

  // What may be let go at all, and what is alike in it.
  void FindGaps();
  size_t Draw(size_t below) { return static_cast<size_t>(random_() % below); }

  // The part of the time, or of the steps, that is over.
  double Elapsed() const;
  double TimeSpent() const;  // of the time alone

  // Nothing is faster: all operators one after the other.
  bool IsDone() const { return best_.fits && best_.time <= total_ && (best_.passes || !options_->passes); }

  // Whether it is to be answered rather than the best one so far: one that passes goes before all that do not.
  bool IsBetter(Nanoseconds time, bool passes) const {
    return !best_.fits || std::pair(!passes, time) < std::pair(!best_.passes, best_.time);
  }
  void Remember(const BudgetFit& fitted, const FitOptions& options, const Decisions& asked);

  // Whether it passes, if it would be the best then, and not too much of the time went into that.
  void LookAt(const Standing& plan);
  bool Passes(const Recipe& recipe);
  void Begin(const Decisions& asked, FitOptions options);
  void BeginAnew();

  // A part of what waits long goes to the host: of what was made in the step, or of what is given too; what was made
  // first, or what waits longest.
  void BeginBySwaps();
  void BeginBySwapsOf(const std::vector<GapId>& gaps, Bytes all);

  // Of what is large and waits long lets go of one after the other, what helps most for its time first: few copies
  // leave few holes.
  void BeginOneByOne();

  // Lets go of the same gap of all layers alike at once, what helps most for its time first, with or without what it is
  // made from.
  void BeginByClasses();
  double CostAByte(GapId gap) const;

  // What costs least a byte goes between the passes, as much as it takes, and what it is made from stays.
  void BeginByThreshold();
  // As many of the first of them as it takes, or all.
  void BeginWithFirst(const std::vector<GapId>& gaps, Sources sources);

  // What the least cut at an operator says (remat/core/point_cut.h), with more and more bytes held.
  void BeginByCuts();
  void BeginByCut(OperatorId at);
  struct CutOf {
    int count = 1;    // of stretches
    double skew = 1;  // > 1: the first are larger than the last, which are made again when most is held
    bool with_last = false;
    bool operator<(const CutOf& other) const {
      return std::tie(count, skew, with_last) < std::tie(other.count, other.skew, other.with_last);
    }
  };
  struct CutPlan {
    std::pair<Bytes, Nanoseconds>
        score;       // above the budget, and time; if it is above, none fits, and `fits` holds least
    Bytes room = 0;  // bytes that may be there at the cut
    Decisions fits, above;
  };
  // In whole operators between the two, by branch and bound, for a part of the time.
  void BeginByBranches(const PointCut& plain, const std::vector<ValueId>& crossing, OperatorId at, const CutPlan& plan);
  CutPlan BestOf(PointCut* cut, const std::vector<ValueId>& crossing, OperatorId at);
  Decisions DecisionsOf(const PointCut::Corner& corner, const std::vector<ValueId>& crossing, OperatorId at);

  // From the forward pass to the backward pass.
  bool Crosses(GapId gap) const;

  // Goes over a good part of the step.
  bool IsLong(GapId gap, size_t part = 16) const;

  // What is used up by the time the gap ends, and is not to go itself, stays for it: up to the operators that do not
  // run again.
  void HoldSources(GapId gap, Decisions* choice, Sources sources);
  Sources DrawSources() { return static_cast<Sources>(1 + Draw(3)); }

  Standing& BestStanding() { return best_standing_[static_cast<size_t>(now_.fetching)]; }

  // What the last plan made again although it had been used up at most so many operators before stays for that.
  void HoldMissed(OperatorId most, Decisions* choice) const;

  // Any of them, or the largest of a few.
  GapId DrawGap(const std::vector<GapId>& gaps);

  // A run of gaps alike around this one: 1, 2, 4, ... of them.
  void AddAlike(GapId gap, std::vector<GapId>* gaps);
  void Improve();

  // What the best plan copies without need stays: no slower, and it fits. Until that part of the time is over.
  void CopyLess(double until);

  // One change. False if there is none to make.
  bool Step(Nanoseconds worse);
  void Change(Decisions* asked);
  void LetGo(GapId gap, Decisions* asked, bool swap);
  void ExchangeAlike(Decisions* asked, bool sources);
  Bytes BytesOf(GapId gap) const {
    return graph_.storages[At(values_.values[At(values_.gaps[At(gap)].value)].storage)].bytes;
  }

  const Graph& graph_;
  const Values& values_;
  BudgetFitter fitter_;
  const Nanoseconds total_;  // of all operators
  int swaps_ = -1;           // what `can_go_` and `classes_` are for
  AlikeGaps classes_;
  std::vector<GapId> can_go_;
  const SearchOptions* options_ = nullptr;
  std::chrono::steady_clock::time_point begin_;
  std::mt19937_64 random_;
  int64_t steps_ = 0;
  CutOf last_cut_;  // the best one of the last time
  Found best_;
  Recipe best_recipe_;
  bool is_new_ = false;  // `now_` has not been looked at
  std::chrono::steady_clock::duration looking_{};
  Standing passed_;  // the best that passes
  Standing now_;
  Standing best_standing_[2];  // by Fetching
  std::vector<bool> hold_;     // by gap, of the step under way
  std::vector<GapId> gone_, held_, alike_;
  std::vector<ValueId> open_;
};

}  // namespace hotpack::remat
