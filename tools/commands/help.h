// hotpack help: what can be read about the command.
#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace hotpack {

// Registers the subcommand; like those of tools/cli/commands.h. `version` is the man page's.
void AddHelpCommand(CLI::App& app, const std::string& version, int* exit_code);

}  // namespace hotpack
