// Kernel names as people write them.
#pragma once

#include <string>

namespace hotpack {

// A C++ symbol (Itanium ABI) as a declaration, without its parameters; anything else as it is.
std::string Demangled(const std::string& name);

}  // namespace hotpack
