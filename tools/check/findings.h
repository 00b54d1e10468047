// Findings and figures: programs print them as JSON on stdout, and gpu_check adds its own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace hotpack::check {

enum class Result {
  kPass,     // as expected
  kFail,     // hotpack, or a program of the check, is wrong
  kDiffers,  // an answer other than documented, by the driver or, under hotpack, by hotpack
  kSkip,     // not possible here: `seen` has the reason
};

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
  double high = 0;    // last decile; below ten samples the maximum
  size_t samples = 0;
};

struct Findings {
  std::vector<Finding> findings;
  std::vector<Figure> figures;
};

const char* ResultName(Result result);

// `samples` must not be empty. O(n log n).
Figure Summarize(std::string name, std::string unit, std::vector<double> samples);

nlohmann::ordered_json ToJson(const Finding& finding);
nlohmann::ordered_json ToJson(const Figure& figure);

// Parses the object in a program's stdout; skips lines before it. Returns nothing, with the reason in *error, if there
// is no object or a field is missing.
std::optional<Findings> ParseFindings(const std::string& text, std::string* error);

}  // namespace hotpack::check
