// Modules that a model repeats, as one row.
#pragma once

#include <vector>

#include "tools/need/need_facts.h"

namespace hotpack {

// Joins modules whose names differ only by whole numbers between dots ("layer.0.fc", "layer.1.fc"), and whose bytes are
// within a tenth of the largest of them. Their row is "2 x layer.*.fc", or "1 and 4 like it" if the names are numbers
// alone, with the sums of bytes and kinds. So one that has much more than its siblings keeps a row of its own. Most
// bytes first. O(parts · log parts). Thread-safe.
std::vector<PeakPart> FoldModules(const std::vector<PeakPart>& modules);

}  // namespace hotpack
