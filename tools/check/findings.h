// Findings and figures as JSON: programs print them on stdout, and gpu_check adds its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tools/check/finding.h"

namespace hotpack::check {

struct Findings {
  std::vector<Finding> findings;
  std::vector<Figure> figures;
};

nlohmann::ordered_json ToJson(const Finding& finding);
nlohmann::ordered_json ToJson(const Figure& figure);

// Parses the object in a program's stdout; skips lines before it. Returns nothing, with the reason in *error, if there
// is no object or a field is missing.
std::optional<Findings> ParseFindings(const std::string& text, std::string* error);

}  // namespace hotpack::check
