// The number of tries of property tests.
#pragma once

namespace hotpack::testing {

// `runs` times, a tenth of it under a sanitizer.
constexpr int Runs(int runs) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return runs / 10;
#else
  return runs;
#endif
}

}  // namespace hotpack::testing
