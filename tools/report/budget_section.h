// The page's part about a budget (docs/budget.md): the step's load before and after, and what was done by module.
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace hotpack {

// `stats`: of the run, with the figures of the budget in it. `report`: what the Python package says of the heaviest step
// (python/hotpack/_budget/account.py), or null. Returns a section with text, a picture and a table, or an empty string
// if there is no budget, or no step was planned, or `report` is not as described there. Its size does not grow with
// the model. O(report).
std::string BudgetSection(const nlohmann::ordered_json& stats, const nlohmann::ordered_json& report);

}  // namespace hotpack
