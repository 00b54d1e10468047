// hotpack help: the command's documentation.
#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace hotpack {

// Registers the subcommand, as tools/cli/commands.h does. `version` is the man page's.
void AddHelpCommand(CLI::App& app, const std::string& version, int* exit_code);

}  // namespace hotpack
