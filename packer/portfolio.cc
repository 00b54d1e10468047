#include "packer/portfolio.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "packer/best_fit.h"
#include "packer/first_fit.h"
#include "packer/skyline.h"
#include "packer/stop.h"

namespace hotpack {
void RunPortfolio(const Timeline& timeline, const PackOptions& options, Bytes lower_bound, int64_t deadline_ns,
                  Incumbent* incumbent) {
  const Bytes target = std::max(lower_bound, options.capacity);
  StopCheck stop(deadline_ns, options.cancel);
  Skyline skyline(timeline);
  Placement placement;
  if (skyline.Dive(BestFitRanks(timeline), incumbent->placement.height - 1, &stop, &placement.offsets,
                   &placement.height)) {
    *incumbent = {placement, "best-fit"};
  }
  (void)target;
}

}  // namespace hotpack
