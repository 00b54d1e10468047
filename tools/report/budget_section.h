// The page's part about a budget (docs/budget.md): the step's load before and after, and what was done by module.
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace hotpack {

// Returns a section with text, a picture and a table. Its size does not grow with the model. `stats`: of the run, with
// the figures of the budget in it. `report`: what the Python package says of the heaviest step
// (python/hotpack/_budget/account.py), or null. Returns an empty string if there is no budget, no step was planned, or
// `report` is not as described there. O(report).
std::string BudgetSection(const nlohmann::ordered_json& stats, const nlohmann::ordered_json& report);

}  // namespace hotpack
