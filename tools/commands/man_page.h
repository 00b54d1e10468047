// What can be read about the command, made from the definitions that its options are parsed by.
#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace hotpack {

// hotpack(1), in the macros of man(7). `version`: such as "0.4.0". Hidden subcommands and options are not in it.
std::string ManPage(const CLI::App& app, const std::string& version);

// A script for bash that completes subcommands, options and file names.
std::string BashCompletion(const CLI::App& app);

}  // namespace hotpack
