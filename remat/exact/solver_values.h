// What a solver of integer programs has written: columns by name.
//
//   CBC     `cbc model.lp solve solution FILE`: a status line, then index, name, value, reduced cost. Columns that are zero may be missing
//   HiGHS   its solution file in raw or sparse style (write_solution_style 0, 4), the sparse one in both forms (packer/highs_columns.h)
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hotpack::remat {

struct SolverValues {
  std::string status;         // in the solver's words
  bool optimal = false;       // the solver says so
  bool has_solution = false;  // false: infeasible, or stopped before a solution was found; what follows is empty
  bool zero_if_missing = false;
  bool only_columns = false;  // no rows among the names: a name that the model has not is a mistake
  double objective = 0;
  absl::flat_hash_map<std::string, double> columns;
};

// Errors, InvalidArgument with one line, "NAME:LINE: reason": a line of another form, a number that is none, a column
// twice, more or fewer columns than counted. O(length). Thread-safe.
absl::StatusOr<SolverValues> ParseSolverValues(absl::string_view text, absl::string_view name);

}  // namespace hotpack::remat
