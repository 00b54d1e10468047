// Identifies the caller.
#pragma once

#include <string>

namespace simgpu {

// Returns the file name, without folder, of the program or library that called this library: the nearest one up the
// stack. A function that jumps here is invisible; its caller is returned. Takes some microseconds.
std::string CallingObject();

}  // namespace simgpu
