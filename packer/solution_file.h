// Solutions of the exact model (packer/model_writer.h) as solvers write them, and placements as CSV.
//
//   CBC         `cbc model.lp solve solution FILE`: a status line, then index, name, value, reduced cost. Numbers have
//               eight significant digits; variables that are zero may be missing
//   HiGHS       its solution file in raw, sparse or pretty style (write_solution_style 0, 4, 1), the sparse one in both forms
//               (packer/highs_columns.h)
//   placement   a minimalloc CSV with a column `offset` (packer/csv.h)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "packer/csv.h"
#include "packer/types.h"

namespace hotpack {

enum class SolutionFormat { kCbc, kHighs, kHighsPretty, kPlacementCsv, kOther };

// What `text` begins like.
SolutionFormat RecogniseSolution(absl::string_view text);

struct SolverSolution {
  std::string status;         // in the solver's words
  bool optimal = false;       // the solver says so
  bool has_solution = false;  // false: infeasible, or stopped before a solution was found; what follows is not set
  Bytes unit = 1;             // from the name of the height variable: one unit of x and height in bytes
  int64_t big = 0;            // from the same name: W, in units
  double height = 0;          // the solver's u
  std::vector<double> x;      // by block, in units, as the file has them
};

// Reads a solver's solution of the model of an instance with `blocks` blocks. Other variables and rows are skipped.
// Errors, InvalidArgument with exactly "NAME:LINE:COLUMN: reason": a line of another form, a number that is none, the
// height variable missing or twice, a block that does not exist or is missing or twice; of HiGHS also more or fewer
// columns than its head counts, and in the sparse style a name that no model has or an index twice. O(length).
// Thread-safe.
absl::StatusOr<SolverSolution> ParseSolverSolution(absl::string_view text, absl::string_view name, size_t blocks);

struct RoundedSolution {
  Placement placement;  // in bytes; not yet validated
  double distance = 0;  // largest |x - nearest integer|, in units
};

// Nearest integers, in bytes. The error says which block's offset does not fit (beyond 2^62, or no number).
absl::StatusOr<RoundedSolution> RoundSolution(const SolverSolution& solution, const Instance& instance);

// The offsets of a placement CSV for `instance`, matched by id. `ids` is empty (blocks are numbered from 0) or has one
// a block. Errors as above: no column `offset`, an id that is unknown or missing, another size or residency than in the
// instance, a block without an offset.
absl::StatusOr<Placement> ParsePlacementCsv(absl::string_view text, absl::string_view name, const Instance& instance,
                                            const std::vector<std::string>& ids);

}  // namespace hotpack
