// The kernels of a program without cudart: a module that the driver loads, and launches by name (launch.h).
#pragma once

namespace hotpack::train {

using DriverKernel = void*;  // CUfunction

// Returns the instance of ForEachIndex whose function is named in `launcher`, the __PRETTY_FUNCTION__ of
// Launch<Function>. The first call loads the module into the current context and keeps it. Throws std::runtime_error if
// the driver fails, or unless exactly one kernel has that function.
DriverKernel FindDriverKernel(const char* launcher);

// Launches on launch_stream. `arguments`: the address of each. Throws std::runtime_error.
void LaunchDriverKernel(DriverKernel kernel, unsigned blocks, unsigned threads, void** arguments);

}  // namespace hotpack::train
