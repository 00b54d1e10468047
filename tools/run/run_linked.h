// Why a program cannot use the simulated device: it has NVIDIA's runtime inside.
#pragma once

#include <string>

namespace hotpack {

// True if the executable at `path` has NVIDIA's libcudart_static linked in, which runs on NVIDIA's driver only. Reads
// the ELF file's sections, at most 128 MiB; stripped programs are recognised too. False for programs that use the
// shared runtime or simgpu's archive, for anything that is not a whole 64-bit little-endian ELF file with section
// headers, and for scripts. What the program's shared libraries have inside is not looked at. Touches nothing; any
// thread.
bool HasNvidiaRuntimeInside(const std::string& path);

}  // namespace hotpack
