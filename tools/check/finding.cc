#include "tools/check/finding.h"

#include <algorithm>
#include <utility>

namespace hotpack::check {

const char* ResultName(Result result) {
  switch (result) {
    case Result::kPass:
      return "pass";
    case Result::kFail:
      return "fail";
    case Result::kDiffers:
      return "differs";
    case Result::kSkip:
      return "skip";
  }
  return "fail";
}

Figure Summarize(std::string name, std::string unit, std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t count = samples.size(), half = count / 2;
  const size_t tenth = (count + 9) / 10;  // nearest rank, from either end
  const double median = count % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
  return {std::move(name), std::move(unit), median, samples[tenth - 1], samples[count - tenth], count};
}

}  // namespace hotpack::check
