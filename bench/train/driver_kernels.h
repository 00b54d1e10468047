// The kernels of a program that has no cudart: a module that the driver loads, and launches by name (launch.h).
#pragma once

namespace hotpack::train {

using DriverKernel = void*;  // CUfunction

// The instance of ForEachIndex whose function is the one named in `launcher`, which is the __PRETTY_FUNCTION__ of
// Launch<Function>. The module is loaded into the current context on the first call and kept. Throws
// std::runtime_error if the driver fails, and if not just one kernel has that function.
DriverKernel FindDriverKernel(const char* launcher);

// On launch_stream. `arguments`: the address of each. Throws std::runtime_error.
void LaunchDriverKernel(DriverKernel kernel, unsigned blocks, unsigned threads, void** arguments);

}  // namespace hotpack::train
