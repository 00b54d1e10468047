// The implementation of remat/search/search.h, for its sources alone.
//
//   search.cc         rounds of changes
//   search_begin.cc   plans to begin with
//   search_cuts.cc    plans to begin with, from minimum cuts
//   search_copies.cc  plans to begin with that copy to the host
#pragma once

#include <algorithm>
#include <chrono>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "remat/core/point_cut.h"
#include "remat/search/search.h"

namespace hotpack::remat {

// Classes of similar gaps: the same gap of results of operators whose names differ in numbers only. `of`: the class by
// gap. `gaps`: each class's gaps, in the program's order.
struct AlikeGaps {
  std::vector<int32_t> of;
  std::vector<std::vector<GapId>> gaps;
};

class Search::State {
 public:
  State(const Graph& graph, const Values& values, const Machine& machine)
      : graph_(graph),
        values_(values),
        machine_(machine),
        fitter_(graph, values, machine),
        total_(TotalCost(graph)),
        hold_(values.gaps.size()) {}
  Found Run(const SearchOptions& options);

 private:
  // Input from which the fitter reproduces a plan.
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
    int64_t copies = 0;
    bool IsThere() const { return over < INT64_MAX; }
    bool IsWorseThan(const BudgetFit& other, Nanoseconds worse) const {
      return std::pair(other.over, other.time) <= std::pair(over, over > other.over ? INT64_MAX : time + worse);
    }
  };

  // Which sources are held after their last use, so that other values can be recomputed from them: none, results of
  // heavy operators, results that cost more than the discarded value, or all.
  enum class Sources : uint8_t { kNone, kHeavy, kCostlier, kAll };

  // Finds the gaps whose values may be discarded or copied, and their classes.
  void FindGaps();
  size_t Draw(size_t below) { return static_cast<size_t>(random_() % below); }

  // Returns the share of the time, or of the steps, that is over.
  double Elapsed() const;
  double TimeSpent() const;  // the share of the time alone

  // Whether the best plan is optimal: it takes no longer than all operators one after the other.
  bool IsDone() const { return best_.fits && best_.time <= total_ && (best_.passes || !options_->passes); }

  // Whether such a plan replaces the best one so far. A plan that passes replaces all that do not. At equal time fewer
  // copies are better.
  bool IsBetter(Nanoseconds time, int64_t copies, bool passes) const {
    return !best_.fits || std::tuple(!passes, time, copies) < std::tuple(!best_.passes, best_.time, best_.copies);
  }
  void Remember(const BudgetFit& fitted, const FitOptions& options, const Decisions& asked);

  // Checks whether `plan` passes, if it would then be the best one and the checks have not used too much of the time.
  void LookAt(const Standing& plan);
  bool Passes(const Recipe& recipe);
  void Begin(const Decisions& asked, FitOptions options);
  void Restart();

  // Begins with the minimum cuts where most bytes are wanted, those first that are estimated to be fastest. What a cut
  // holds beyond the budget is copied to the host: what is used last, or what is made first.
  void BeginByCutWithCopies();
  // The gaps of these values around the operator, in which they may be copied to the host and back.
  std::vector<GapId> GapsOver(OperatorId at, const std::vector<ValueId>& values) const;
  bool IsAway(GapId gap) const {
    return graph_.storages[At(values_.values[At(values_.gaps[At(gap)].value)].storage)].away;
  }

  // Begins with what the fitter evicts, for each of a few prices of copies.
  void BeginByCopyPrices();

  // Begins with copies to the host of parts of the long gaps. The gaps are those of values made in the step, or of
  // given values too. Their order is by the time they were made, or by length.
  void BeginBySwaps();
  void BeginBySwapsOf(const std::vector<GapId>& gaps, Bytes all);

  // Discards large values with long gaps one after the other, the one that helps most for its time first. Few copies
  // leave few fragments.
  void BeginOneByOne();

  // Discards the same gap of all similar layers at once, the class that helps most for its time first, with or without
  // holding the sources.
  void BeginByClasses();
  double CostAByte(GapId gap) const;

  // Discards the values with the least cost per byte in the gaps between the passes, as many as necessary, and holds
  // their sources.
  void BeginByThreshold();
  // Discards the values of the first `gaps`, as many as necessary, or all.
  void BeginWithFirst(const std::vector<GapId>& gaps, Sources sources);

  // Begins with the minimum cuts at an operator (remat/core/point_cut.h), with more and more bytes held.
  void BeginByCuts();
  void BeginByCut(OperatorId at);
  struct CutOf {
    int count = 1;  // of stretches
    // Above 1 the first stretches are larger than the last, which are recomputed while most is held.
    double skew = 1;
    bool with_last = false;
    bool operator<(const CutOf& other) const {
      return std::tie(count, skew, with_last) < std::tie(other.count, other.skew, other.with_last);
    }
  };
  struct CutPlan {
    // Bytes above the budget, and time. If the bytes are positive, no plan fits, and `fits` is the smallest.
    std::pair<Bytes, Nanoseconds> score;
    Bytes room = 0;  // bytes that may be resident at the cut
    Decisions fits, above;
  };
  // Searches whole operators between the two plans by branch and bound, for a part of the time.
  void BeginByBranches(const PointCut& plain, const std::vector<ValueId>& crossing, OperatorId at, const CutPlan& plan);
  CutPlan BestOf(PointCut* cut, const std::vector<ValueId>& crossing, OperatorId at);
  Decisions DecisionsOf(const PointCut::Corner& corner, const std::vector<ValueId>& crossing, OperatorId at);

  // Whether the gap leads from the forward pass to the backward pass.
  bool Crosses(GapId gap) const;

  // Whether the gap covers more than one `part`-th of the step's operators.
  bool IsLong(GapId gap, size_t part = 16) const;

  // Holds the sources of the gap's value until the gap ends: values that are used up by then. Stops at operators that
  // do not run again.
  void HoldSources(GapId gap, Decisions* choice, Sources sources);
  Sources DrawSources() { return static_cast<Sources>(1 + Draw(3)); }

  // Returns what a copy counts in comparisons (FitOptions::copy_price): one of a few numbers.
  double DrawCopyPrice();

  // Whether the fastest plan to begin with that fetches so is much slower than another one.
  bool IsFarBehind(Fetching fetching) const {
    const Nanoseconds least = *std::min_element(std::begin(least_), std::end(least_));
    const Nanoseconds own = least_[static_cast<size_t>(fetching)];
    return own < INT64_MAX && 4 * (own - total_) > 5 * (least - total_);
  }
  void ForgetLeast() { std::fill(std::begin(least_), std::end(least_), INT64_MAX); }
  Standing& BestStanding() { return best_standing_[static_cast<size_t>(now_.fetching)]; }

  // Holds values that the last plan recomputed although they had been used up at most `most` operators earlier.
  void HoldMissed(OperatorId most, Decisions* choice) const;

  // Draws one of the gaps at random, or the largest of a few.
  GapId DrawGap(const std::vector<GapId>& gaps);

  // Adds a run of 1, 2, 4, ... similar gaps around this one.
  void AddAlike(GapId gap, std::vector<GapId>* gaps);
  void Improve();

  // Keeps values that the best plan copies without need, if the plan gets no slower and still fits. `until`: a share of
  // the time.
  void CopyLess(double until);

  // Tries one change. Returns false if none is possible.
  bool Step(Nanoseconds worse);
  void Change(Decisions* asked);
  void LetGo(GapId gap, Decisions* asked, bool swap);
  void ExchangeAlike(Decisions* asked, bool sources);
  Bytes BytesOf(GapId gap) const {
    return graph_.storages[At(values_.values[At(values_.gaps[At(gap)].value)].storage)].bytes;
  }

  const Graph& graph_;
  const Values& values_;
  const Machine machine_;
  BudgetFitter fitter_;
  const Nanoseconds total_;  // of all operators
  // The value of SearchOptions::swap for which `can_go_` and `classes_` are; -1: none.
  int swaps_ = -1;
  AlikeGaps classes_;
  std::vector<GapId> can_go_;
  const SearchOptions* options_ = nullptr;
  std::chrono::steady_clock::time_point begin_;
  std::mt19937_64 random_;
  int64_t steps_ = 0;
  CutOf last_cut_;  // the best one of the previous search
  Found best_;
  Recipe best_recipe_;
  bool is_new_ = false;  // `now_` has not been checked
  std::chrono::steady_clock::duration looking_{};
  Standing passed_;  // the best plan that passes
  Standing now_;
  Standing best_standing_[kFetchings];  // by Fetching
  Nanoseconds least_[kFetchings];       // by Fetching: of plans to begin with
  std::vector<bool> hold_;              // by gap, in the current step
  std::vector<GapId> gone_, held_, alike_;
  std::vector<ValueId> open_;
};

}  // namespace hotpack::remat
