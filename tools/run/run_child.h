// Runs a program as a child, as if it had been started directly.
#pragma once

#include <string>
#include <vector>

namespace hotpack {

// Runs `path` with `arguments` (arguments[0] is the name it sees) in this process's environment and waits for it.
// Signals that this process gets meanwhile are forwarded; those that the terminal sends to the whole process group are
// not sent twice. Afterwards signals do what they did before. Returns the exit code, 128 + signal if it was killed; 126
// or 127 with *error set if it could not be started. `output_to_stderr`: its standard output is this process's stderr.
int RunChild(const std::string& path, const std::vector<std::string>& arguments, bool output_to_stderr,
             std::string* error);

}  // namespace hotpack
