// Figures of the program's own, which join hotpack's figures of the process. They are in sections, each with a name.
//
//   <HOTPACK_STATS_DIR>/sections.<pid>   {"NAME": {"figures": {...}, "report": {...}}, ...}
//
// The Python package writes it (python/hotpack/_sections.py). Nothing here knows a name.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/persist/stats_file.h"

namespace hotpack {

// By name of the section; objects, perhaps empty.
struct ProgramSections {
  nlohmann::ordered_json figures = nlohmann::ordered_json::object();  // numbers by name, for --json-stats
  nlohmann::ordered_json report = nlohmann::ordered_json::object();   // what the page draws; its reader checks it
};

// Reads such a file. Nothing of one that is missing, larger than 4 MiB, or no JSON. Leaves out what is no
// number among figures. O(file).
ProgramSections ReadSections(const std::string& path);

// Reads those of the first process that has any, in `directory`.
ProgramSections ReadSections(const std::string& directory, const std::vector<ProcessStats>& processes);

}  // namespace hotpack
