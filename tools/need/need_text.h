// What `hotpack need` prints: text for a screen, or one JSON object.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"
#include "tools/need/budget_plans.h"
#include "tools/need/need_facts.h"

namespace hotpack {

// One value of --vary, or the only run.
struct NeedCase {
  std::string value;  // of the varied parameter; empty: nothing varies
  SimulatedRun run;
  Need need;
  BudgetPlans budgets;  // no plans: not asked for, or there is no graph
};

// The question of --fits: does the program, with what is not simulated, fit a device of `bytes`?
struct FitsQuestion {
  std::string text;  // as given
  uint64_t bytes = 0;
};

struct NeedAnswer {
  std::vector<NeedCase> cases;  // at least one, in the order of their values
  std::string parameter;        // of --vary; empty: nothing varies
  std::optional<FitsQuestion> fits;
  bool cards = false;   // which cards fit
  int ranks = 0;        // of fake process groups: each case is a rank; 0: there are none
  size_t detailed = 0;  // the case whose peak is shown
  // Of --vary and --fits: the largest value that fits, by a run; nothing: none was found.
  std::optional<int64_t> largest;
  bool largest_at_least = false;  // larger ones were not ruled out
};

// Returns true if the case fits: hotpack's smallest device and the memory that every process takes in addition.
bool Fits(const NeedCase& one, uint64_t bytes);

// Both are of one case in their details, and have a row or an entry for each case.
std::string NeedText(const NeedAnswer& answer);
nlohmann::ordered_json NeedJson(const NeedAnswer& answer);

}  // namespace hotpack
