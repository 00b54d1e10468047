// What `hotpack` and `hotpack-remat` do alike with their command lines.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace hotpack {

// The subcommands that --help lists.
std::vector<const CLI::App*> ListedCommands(const CLI::App& app);

// Examples and exit codes, for the end of --help.
std::string CommandFooter();

// Returns "there is no command 'compar': did you mean compare?", or where all are listed if none of `names` is near.
std::string NoSuchCommand(const std::string& name, const std::vector<std::string>& names);

// Parses, which runs the chosen subcommand. Returns *exit_code, or kExitBadUse after one line on stderr: wrong options,
// or standard output took not all that was printed.
int RunCommandLine(CLI::App& app, int argc, char** argv, const int& exit_code);

}  // namespace hotpack
