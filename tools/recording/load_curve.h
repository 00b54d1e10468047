// A small load curve for the terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profiler/event.h"
#include "profiler/profile.h"

namespace hotpack {

// Returns whether the file descriptor is a terminal that shows Unicode. The first of LC_ALL, LC_CTYPE and LANG that is
// set must name UTF-8, and TERM must be set and not "dumb".
bool ShowsCurves(int fd);

// Returns how many characters fit after `indent` others on a line of the terminal: at least 20, at most 72.
size_t CurveWidth(int fd, size_t indent);

// Returns the values as `rows` lines (≥ 1) of at most `width` characters (≥ 1), in eighths of a block, highest line
// first. Each line begins with `indent` spaces and ends with a line end. A character shows the maximum of its values;
// the full height is the maximum of all. Empty without values.
std::string CurveText(const std::vector<uint64_t>& values, size_t width, size_t rows, size_t indent);

// Returns the load by request of the hot iteration, in bytes. O(n).
std::vector<uint64_t> LoadOf(const Profile& profile);
// Returns the live bytes by event, for recordings without a repeating iteration. O(events).
std::vector<uint64_t> LoadOf(const Trace& trace);

// Returns the load of the last marked iteration, else of the repeating one, else of the whole recording. O(events).
std::vector<uint64_t> LoadWorthShowing(const Trace& trace);

}  // namespace hotpack
