// Checkmate (Jain et al. 2020, "Checkmate: Breaking the memory wall with optimal tensor rematerialization") as a mixed
// integer program: which operators run again and when, so that a step fits a budget in the least time.
//
//   stage     R_t_i  operator i runs in stage t                S_t_v  value v is held from stage t-1 into t
//   0         1
//   1         . 1        stage t runs operator t for the first time (the frontier, section 4.6 of the paper). Before it
//   2         1 . 1      it reruns operators, in the program's order and each once
//   3         . . 1 1
//
//   min Σ cost_i R_t_i
//   R_t_i ≤ S_t_v + R_t_maker(v)           operands of i are held, or made before it in the same stage    (1b)
//   S_(t+1)_v ≤ S_t_v + R_t_maker(v)       only resident values are held                                  (1c)
//   V_t_(k+1) = V_t_k + made_t_k - freed_t_k, V_t_k + made_t_k + workspace_k R_t_k ≤ budget               (2, 3)
//   F_t_v_k = R_t_k (1 - S_(t+1)_v) Π (1 - R_t_j) over users j of v behind k: v is freed after k          (5)
//
// F is made linear by one row per factor, F ≤ 1 - factor, so F need not be integer. As published, (7) is used: Σ
// factors ≤ κ (1 - F) and 1 - F ≤ Σ factors with binary F. Its relaxation is weaker.
//
// The model also has what graphs here have and the paper does not:
//  - several results of an operator: each has its S and F;
//  - given contents: held, or discarded for good;
//  - contents changed in place: of a storage's contents at most one is resident, and contents that a run overwrites are
//    not held;
//  - kept contents: the last stage, number n, recomputes them for the end;
//  - workspaces, and operators that may run only once;
//  - memory taken over in place, by operators with one result of the same size.
// Copies to the host are not modelled.
//
// The optimum is over plans of this form: first runs in the program's order, and between two of them no operator twice.
// A plan that makes a value twice between two first runs may need less memory or time. So the optimum is no bound for
// all plans (remat/exact/bounds.h has one).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/core/schedule.h"
#include "remat/core/values.h"
#include "remat/exact/linear_program.h"
#include "remat/exact/solver_values.h"

namespace hotpack::remat {

struct CheckmateOptions {
  bool as_published = false;  // F as in (7)
  // Rounds sizes down and the budget up, so that the optimum is no higher than in exact bytes.
  bool for_bound = false;
  int64_t most_columns = 2'000'000;  // more is an error
};

struct CheckmateModel {
  LinearProgram program;
  // Memory is in multiples of so many bytes. Sizes are rounded up and the budget down.
  Bytes unit = 1;
  int32_t stages = 0;
  std::vector<std::vector<int32_t>> runs;  // [stage][operator]: column of R, kNeverRuns or kAlwaysRuns
};
inline constexpr int32_t kNeverRuns = -1, kAlwaysRuns = -2;

// Returns the model. `budget`: bytes of the live peak. The unit is the common divisor of the sizes, or a 2^24th of the
// budget if that is more, because solvers compute with tolerances. O(operators · (operators + uses)). Thread-safe.
// Errors, one line: InvalidArgument for a budget below 1; ResourceExhausted for given contents above the budget and for
// too many columns.
absl::StatusOr<CheckmateModel> BuildCheckmate(const Graph& graph, const Values& values, Bytes budget,
                                              const CheckmateOptions& options = {});

// Returns the program without integers. Its optimum is a lower bound for plans of the model's form.
LinearProgram Relaxed(LinearProgram program);

// Returns the plan of a solver's solution. Its time is the solver's objective, and its live peak is at most the budget.
// Thread-safe. Errors: NotFound if there is no solution; InvalidArgument if a necessary column is missing, if a column
// is unknown although only columns are named, or if the values are no plan.
absl::StatusOr<Schedule> ScheduleOfSolution(const Graph& graph, const Values& values, const CheckmateModel& model,
                                            const SolverValues& solution);

}  // namespace hotpack::remat
