// Whether a recording of a program reaches to the program's end.
#pragma once

#include <string>

namespace hotpack {

// Returns why the trace file at `path` ended before the program, in a clause; empty: it did not. Reads its header only.
std::string CutBecause(const std::string& path);

// Returns true if it is the full disk that ended it.
bool EndedByFullDisk(const std::string& path);

// Returns why nothing stands at `path`, where a recording could not be written: a full disk, or unknown.
std::string MissingBecause(const std::string& path);

}  // namespace hotpack
