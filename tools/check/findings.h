// Findings and figures: what a program tells gpu_check as JSON on its stdout, and what gpu_check adds of its own.
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
  kDiffers,  // an answer other than documented: the driver's or, under hotpack, hotpack's; worth writing down
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
  double median = 0;  // of an even number of samples, the mean of the middle two
  double low = 0;     // first decile, nearest rank; of less than ten samples the least
  double high = 0;    // last decile; of less than ten samples the largest
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

// The object in what a program wrote to stdout: lines before it are passed over. Nothing, and the reason in *error, if
// there is none or it lacks a field.
std::optional<Findings> ParseFindings(const std::string& text, std::string* error);

}  // namespace hotpack::check
