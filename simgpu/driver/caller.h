// Who called.
#pragma once

#include <string>

namespace simgpu {

// The file name, without its folder, of the program or library from which this library was called: what is nearest up
// the stack. A function that jumps here rather than calls is not seen; its caller is. Some microseconds.
std::string CallingObject();

}  // namespace simgpu
