// Runs a program as a child, as if it had been started directly.
#pragma once

#include <string>
#include <vector>

namespace hotpack {

// Runs `path` with `arguments` (arguments[0] is the name that it sees) in this process's environment and waits for it.
// Returns the exit code, 128 + signal if it was killed; 126 or 127 with *error set if it could not be started. Forwards
// signals that this process gets meanwhile. Signals that the terminal sends to the whole process group are not sent
// twice. Restores the signal handling afterwards. `output_to_stderr`: its standard output is this process's stderr.
int RunChild(const std::string& path, const std::vector<std::string>& arguments, bool output_to_stderr,
             std::string* error);

}  // namespace hotpack
