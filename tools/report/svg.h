// A packed iteration as SVG, for papers and documents.
#pragma once

#include <string>

#include "tools/report/report_model.h"

namespace hotpack {

struct SvgOptions {
  int width = 960;  // pixels
  int height = 560;
};

// Returns blocks with time to the right and offset up, coloured by lifetime. Below them: the load, the fragmentation,
// the plan's height and the lower bound. Blocks smaller than a pixel are merged with their neighbours, so the picture's
// size bounds the text, not the number of blocks. Well-formed, self-contained XML. O(blocks · log).
std::string Svg(const ReportModel& picture, const SvgOptions& options);

}  // namespace hotpack
