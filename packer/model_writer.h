// Writes the exact model as text for solvers: CPLEX LP and (free) MPS.
//
// Names, the same in both:
//   u_UNIT_W  the height. UNIT bytes are one unit, W as in the model: so a solution states its own units
//   xI        the offset of block I
//   kI        its offset in alignments
//   zI_J      the order of blocks I < J
// Rows: tI equation (2), aI_J (3), bI_J (4), mI the alignment, lb the lower bound. Comments give the id of block I.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "packer/exact_model.h"

namespace hotpack {

enum class ModelFormat { kLp, kMps };

// Receives the text piece by piece. An error ends the writing.
using TextSink = std::function<absl::Status(absl::string_view)>;

// Returns the name of the height variable.
std::string HeightName(const ExactModel& model);

// Writes all of `model`. `ids` is empty or has one entry per block. No line is longer than 255 bytes. The text depends
// only on the arguments. Memory in addition to the model: about 64 KiB for LP; 8 bytes per pair for MPS, which is
// ordered by columns. O(n + pairs). Errors: those of the sink. Thread-safe.
absl::Status WriteModel(const ExactModel& model, ModelFormat format, const std::vector<std::string>& ids,
                        const TextSink& sink);

}  // namespace hotpack
