// The exact model as text that solvers read: CPLEX LP and (free) MPS.
//
// Names, the same in both: u_UNIT_W the height (UNIT bytes are one unit, W as in the model, so that a solution says by
// itself what it counts in), xI the offset of block I, kI its offset in alignments, zI_J the order of blocks I < J.
// Rows: tI equation (2), aI_J (3), bI_J (4), mI the alignment, lb the lower bound. Comments say which id block I has.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "packer/exact_model.h"

namespace hotpack {

enum class ModelFormat { kLp, kMps };

// Takes the text piece by piece; an error ends the writing.
using TextSink = std::function<absl::Status(absl::string_view)>;

// The name of the height variable.
std::string HeightName(const ExactModel& model);

// Writes all of `model`. `ids` is empty or has one a block. No line is longer than 255 bytes; the text depends on
// nothing but the arguments. Memory beyond the model: some 64 KiB for LP, 8 bytes a pair for MPS, which is ordered by
// columns. O(n + pairs). Errors: the sink's. Thread-safe.
absl::Status WriteModel(const ExactModel& model, ModelFormat format, const std::vector<std::string>& ids,
                        const TextSink& sink);

}  // namespace hotpack
