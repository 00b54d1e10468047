// Checkmate (Jain et al. 2020, "Checkmate: Breaking the memory wall with optimal tensor rematerialization") as a mixed
// integer program: when to run which operator again, so that a step fits a budget in the least time.
//
//   stage     R_t_i  operator i runs in stage t                S_t_v  value v is held from stage t-1 into t
//   0         1
//   1         . 1        stage t runs operator t for the first time (the frontier, section 4.6 of the paper), and before it whatever is
//   2         1 . 1      made again, in the program's order and each operator once
//   3         . . 1 1
//
//   min Σ cost_i R_t_i
//   R_t_i ≤ S_t_v + R_t_maker(v)           what i uses is held, or made before it in the same stage        (1b)
//   S_(t+1)_v ≤ S_t_v + R_t_maker(v)       what is held was there                                          (1c)
//   V_t_(k+1) = V_t_k + made_t_k - freed_t_k, V_t_k + made_t_k + workspace_k R_t_k ≤ budget                (2, 3)
//   F_t_v_k = R_t_k (1 - S_(t+1)_v) Π (1 - R_t_j) over users j of v behind k: v goes when k has run        (5)
//
// F is linear by one row a factor, F ≤ 1 - factor, so that it need not be integer; as published, by (7): Σ factors ≤ κ
// (1 - F) and 1 - F ≤ Σ factors with binary F, whose relaxation is weaker.
//
// What a graph has and the paper does not: several results of an operator (each has its S and F), contents that are
// given (held, or gone for good), that are changed in place (of a storage's contents at most one is there; what a run
// would overwrite is not held), or kept (the last stage, number n, makes again what is to be there at the end),
// workspace, operators that may run once only, and memory that is taken over in place by operators with one result of
// the same size. Copies to the host are not in it.
//
// Its optimum is that of plans of this form: first runs in the program's order, and between two of them no operator
// twice. A plan that makes something twice between two first runs may need less memory or time, so the optimum is no
// bound for all plans (remat/exact/bounds.h has one).
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
  bool for_bound = false;     // sizes rounded down and the budget up: the optimum is no higher than that in bytes
  int64_t most_columns = 2'000'000;  // more is an error
};

struct CheckmateModel {
  LinearProgram program;
  Bytes unit = 1;  // memory is in units of so many bytes; sizes are rounded up and the budget down
  int32_t stages = 0;
  std::vector<std::vector<int32_t>> runs;  // [stage][operator]: column of R, kNeverRuns or kAlwaysRuns
};
inline constexpr int32_t kNeverRuns = -1, kAlwaysRuns = -2;

// `budget`: bytes of the live peak. The unit is the sizes' common divisor, or what makes the budget 2^24 of them if
// that is more: solvers compute with tolerances. Errors, one line: InvalidArgument for a budget below 1,
// ResourceExhausted for given contents above the budget and for too many columns. O(operators · (operators + uses)).
// Thread-safe.
absl::StatusOr<CheckmateModel> BuildCheckmate(const Graph& graph, const Values& values, Bytes budget,
                                              const CheckmateOptions& options = {});

// The same with no integers: the optimum is a lower bound for plans of the model's form.
LinearProgram Relaxed(LinearProgram program);

// The plan of a solver's solution of the model: NotFound if it has none; InvalidArgument if a column that must be there
// is missing, if one is not of the model where only columns are named, or if what it says is no plan. Its time is the
// solver's objective, its live peak at most the budget. Thread-safe.
absl::StatusOr<Schedule> ScheduleOfSolution(const Graph& graph, const Values& values, const CheckmateModel& model,
                                            const SolverValues& solution);

}  // namespace hotpack::remat
