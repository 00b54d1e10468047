// A small curve of a load for the terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profiler/event.h"
#include "profiler/profile.h"

namespace hotpack {

// Whether the file descriptor is a terminal that shows Unicode: its locale (LC_ALL, LC_CTYPE, LANG, the first that is
// set) says UTF-8 and TERM is neither unset nor "dumb".
bool ShowsCurves(int fd);

// How many characters fit beside `indent` others on a line of the terminal: at least 20, at most 72.
size_t CurveWidth(int fd, size_t indent);

// The values as `rows` lines (≥ 1) of at most `width` characters (≥ 1) in eighths of a block, the highest line first,
// each ending with a line end and beginning with `indent` spaces. A character is as high as the largest of the values
// that it stands for, of which a line's full height is the largest of all. Empty without values.
std::string CurveText(const std::vector<uint64_t>& values, size_t width, size_t rows, size_t indent);

// Load by request of the hot iteration, in bytes. O(n).
std::vector<uint64_t> LoadOf(const Profile& profile);
// Live bytes by event, where no iteration repeats. O(events).
std::vector<uint64_t> LoadOf(const Trace& trace);

// What is worth a curve in a recording: the last marked iteration, else the one that repeats, else all of it.
// O(events).
std::vector<uint64_t> LoadWorthShowing(const Trace& trace);

}  // namespace hotpack
