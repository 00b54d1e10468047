// What a program would cost with less memory: `hotpack plan` for some budgets, from the graph of a step.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace hotpack {

// A plan for one budget.
struct BudgetPlan {
  int percent = 0;            // of what PyTorch needs for the job as it is
  uint64_t budget = 0;        // bytes of the arena: weights and all
  bool to_fit = false;        // the budget is what the device of --fits leaves
  uint64_t outside = 0;       // bytes live outside the recorded step, if above the budget: no plan of the step helps
  bool found = false;         // a plan was found within the time limit; otherwise nothing below is known
  double time_ratio = 0;      // the step's time over that of the program as it is
  uint64_t arena = 0;         // bytes
  uint64_t again = 0;         // operators that are computed again
  uint64_t copied = 0;        // storages that are copied to the host
  uint64_t host_peak = 0;     // bytes on the host at most
  std::string longest_again;  // the place whose operators take longest to be computed again; empty: unknown
};

struct BudgetPlans {
  std::string costs;  // of the operators: "measured", or "roofline: GPU"
  std::vector<BudgetPlan> plans;
};

// Of what PyTorch needs for the job as it is.
inline constexpr std::array<int, 3> kBudgetPercents = {75, 60, 50};

// Plans for parts of `whole` bytes, two seconds at most. `graph`: the JSON text of a graph. `outside`: bytes that
// are live at some moment outside its step. `to_fit`: bytes of one more budget, the first one, if it is below `whole`;
// 0: none. Returns no plans if there is no graph, or if hotpack-remat is missing.
BudgetPlans PlanBudgets(const std::string& graph, uint64_t whole, uint64_t outside, uint64_t to_fit = 0);

// Reads what `hotpack plan --json` printed. False: it is no plan.
bool ReadBudgetPlan(const std::string& printed, BudgetPlan* plan);

}  // namespace hotpack
