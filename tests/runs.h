// The number of tries of property tests.
#pragma once

#include "tests/support/sanitized.h"

namespace hotpack::testing {

// `runs` times, a tenth of it under a sanitizer.
constexpr int Runs(int runs) {
#ifdef HOTPACK_SANITIZED
  return runs / 10;
#else
  return runs;
#endif
}

}  // namespace hotpack::testing
