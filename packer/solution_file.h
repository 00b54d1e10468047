// Reads solutions of the exact model (packer/model_writer.h) as solvers write them, and placements as CSV.
//
//   CBC         `cbc model.lp solve solution FILE`: a status line, then index, name, value, reduced cost. Numbers have
//               eight significant digits; variables that are zero may be missing
//   HiGHS       its solution file in raw, sparse or pretty style (write_solution_style 0, 4, 1); the sparse style in
//               both forms (packer/highs_columns.h)
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

// Returns the format that `text` begins with.
SolutionFormat RecogniseSolution(absl::string_view text);

struct SolverSolution {
  std::string status;         // in the solver's words
  bool optimal = false;       // as the solver states
  bool has_solution = false;  // false: infeasible, or stopped before a solution was found; the fields below are not set
  Bytes unit = 1;             // from the name of the height variable: one unit of x and height in bytes
  int64_t big = 0;            // from the same name: W, in units
  double height = 0;          // the solver's u
  std::vector<double> x;      // by block, in units, as in the file
};

// Reads a solver's solution of the model of an instance with `blocks` blocks. Skips other variables and rows.
// O(length). Thread-safe. Errors, InvalidArgument with exactly "NAME:LINE:COLUMN: reason":
// - a line of another form, or an invalid number;
// - the height variable missing or twice;
// - a block that does not exist, is missing, or occurs twice;
// - HiGHS: more or fewer columns than the head states;
// - HiGHS, sparse style: a name that no model has, or an index twice.
absl::StatusOr<SolverSolution> ParseSolverSolution(absl::string_view text, absl::string_view name, size_t blocks);

struct RoundedSolution {
  Placement placement;  // in bytes; not yet validated
  double distance = 0;  // largest |x - nearest integer|, in units
};

// Rounds to the nearest integers, in bytes. The error names the block whose offset is invalid (beyond 2^62, or no
// number).
absl::StatusOr<RoundedSolution> RoundSolution(const SolverSolution& solution, const Instance& instance);

// Reads the offsets of a placement CSV for `instance`, matched by id. `ids` is empty (blocks are numbered from 0) or
// has one entry per block. Errors as above: no column `offset`, an unknown or missing id, a size or residency different
// from the instance's, a block without an offset.
absl::StatusOr<Placement> ParsePlacementCsv(absl::string_view text, absl::string_view name, const Instance& instance,
                                            const std::vector<std::string>& ids);

}  // namespace hotpack
