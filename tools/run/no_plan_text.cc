#include "tools/run/no_plan_text.h"

namespace hotpack {

std::string NoPlanText(const hotpack_stats& stats) {
  if (stats.planned > 0) return "";
  switch (stats.no_plan_reason) {
    case HOTPACK_NO_PLAN_TOO_SHORT:
      return "too few requests to find an iteration";
    case HOTPACK_NO_PLAN_NO_REPETITION:
      return "no iteration repeated";
    case HOTPACK_NO_PLAN_NOT_READY:
      return "the run ended before its plan was ready";
    case HOTPACK_NO_PLAN_NOT_BEGUN:
      return "the run ended before the planned iteration began again";
    case HOTPACK_NO_PLAN_DIFFERENT:
      return "its iterations differ from the planned ones";
    case HOTPACK_NO_PLAN_CAPTURE:
      return "the plan waited for the end of a capture";
    case HOTPACK_NO_PLAN_TOO_LARGE:
      return "the plan does not fit the device";
    case HOTPACK_NO_PLAN_DRIVER_FASTER:
      return "nothing repeated, and the driver's pool is faster";
    case HOTPACK_NO_PLAN_GIVEN_UP:
      return "hotpack gave up: the host had no memory for it";
    default:
      return "";
  }
}

}  // namespace hotpack
