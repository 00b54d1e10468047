// The table of `hotpack top`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/top/stats_watch.h"

namespace hotpack {

// Returns the table, without line ends: two lines of titles, a line for each process, and their total if there are
// several. The total is that of the processes that run; once all have ended, of all. At most `rows` processes are
// listed (≥ 1), and a line says how many are left out. Lines are cut to `columns` characters (0: not at all).
std::vector<std::string> TopTable(const std::vector<WatchedFigures>& processes, size_t rows, size_t columns);

}  // namespace hotpack
