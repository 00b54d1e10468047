// The output of a solver of integer programs: values of columns by name.
//
//   CBC     `cbc model.lp solve solution FILE`: a status line, then index, name, value, reduced cost. Columns with
//           value zero may be missing
//   HiGHS   its solution file in raw or sparse style (write_solution_style 0, 4), the sparse one in both forms
//           (packer/highs_columns.h)
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hotpack::remat {

struct SolverValues {
  std::string status;    // in the solver's words
  bool optimal = false;  // the solver reports optimality
  // False: infeasible, or stopped before a solution was found. Then the following members are empty.
  bool has_solution = false;
  bool zero_if_missing = false;
  // The names contain no rows, so a name that the model does not have is an error.
  bool only_columns = false;
  double objective = 0;
  absl::flat_hash_map<std::string, double> columns;
};

// Returns the values of a solution file. O(length). Thread-safe. Errors are InvalidArgument with one line, "NAME:LINE:
// reason": a malformed line or number, a column twice, more or fewer columns than announced.
absl::StatusOr<SolverValues> ParseSolverValues(absl::string_view text, absl::string_view name);

}  // namespace hotpack::remat
