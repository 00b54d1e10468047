// Scripts that complete commands, options and their values in a shell, from the definitions of the options.
#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace hotpack {

// Each returns a whole script. Files are left to the shell.
std::string BashCompletion(const CLI::App& app);
std::string ZshCompletion(const CLI::App& app);
std::string FishCompletion(const CLI::App& app);

}  // namespace hotpack
