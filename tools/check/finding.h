// One finding, one figure: what the programs of the check report, without a form of output.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hotpack::check {

enum class Result {
  kPass,     // as expected
  kFail,     // hotpack, or a program of the check, is wrong
  kDiffers,  // an answer other than documented, by the driver or, under hotpack, by hotpack
  kSkip,     // not possible here: `seen` has the reason
};

// "pass", "fail", "differs" or "skip".
const char* ResultName(Result result);

struct Finding {
  std::string name;  // unique within its step
  Result result = Result::kPass;
  std::string expected;
  std::string seen;
};

struct Figure {
  std::string name;
  std::string unit;
  double median = 0;  // of an even number of samples: the mean of the middle two
  double low = 0;     // first decile, nearest rank; below ten samples the minimum
  double high = 0;    // last decile, nearest rank from the end; below ten samples the maximum
  size_t samples = 0;
};

// `samples` must not be empty. O(n log n).
Figure Summarize(std::string name, std::string unit, std::vector<double> samples);

}  // namespace hotpack::check
