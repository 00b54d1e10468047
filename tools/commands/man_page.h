// Documentation of the command, made from the definitions of its options.
#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace hotpack {

// Returns hotpack(1) in the macros of man(7). `version`: such as "0.4.0". Omits hidden subcommands and options.
std::string ManPage(const CLI::App& app, const std::string& version);

}  // namespace hotpack
