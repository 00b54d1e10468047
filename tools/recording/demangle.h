// Readable kernel names.
#pragma once

#include <string>

namespace hotpack {

// Returns a C++ symbol (Itanium ABI) as a declaration without its parameters; other names unchanged.
std::string Demangled(const std::string& name);

}  // namespace hotpack
