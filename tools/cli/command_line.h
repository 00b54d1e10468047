// What `hotpack` and `hotpack-remat` do alike with their command lines.
#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace hotpack {

// Exit codes and an example, for the end of --help.
std::string CommandFooter();

// Parses, which runs the chosen subcommand. Returns *exit_code, or kExitBadUse after one line on stderr: wrong options,
// or standard output took not all that was printed.
int RunCommandLine(CLI::App& app, int argc, char** argv, const int& exit_code);

}  // namespace hotpack
