// Detects a program that cannot use the simulated device, because it contains NVIDIA's runtime.
#pragma once

#include <string>

namespace hotpack {

// Returns true if the executable at `path` has NVIDIA's libcudart_static linked in, which works only with NVIDIA's
// driver. Reads the ELF file's sections, at most 128 MiB; recognises stripped programs too. Returns false for programs
// with the shared runtime or simgpu's archive, for scripts, and for files that are not whole 64-bit little-endian ELF
// files with section headers. Does not check the program's shared libraries. Touches nothing. Thread-safe.
bool HasNvidiaRuntimeInside(const std::string& path);

}  // namespace hotpack
