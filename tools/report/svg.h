// The picture of a packed iteration as SVG, for papers and documents.
#pragma once

#include <string>

#include "tools/report/report_model.h"

namespace hotpack {

struct SvgOptions {
  int width = 960;  // pixels
  int height = 560;
};

// Blocks with time to the right and offset up, coloured by lifetime; below them the load, the holes, the plan's height
// and the lower bound. Blocks that are smaller than a pixel are merged with those beside them, so that the text is
// bounded by the picture's size, not by the number of blocks. Well-formed XML that refers to nothing else. O(blocks ·
// log).
std::string Svg(const ReportModel& picture, const SvgOptions& options);

}  // namespace hotpack
