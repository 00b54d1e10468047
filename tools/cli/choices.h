// Options that take one of a few names, for the completion of shells.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class Option;
}  // namespace CLI

namespace hotpack {

// Notes the names that `option` takes, and returns it. `list`: several, separated by commas. It checks nothing. Not
// thread-safe.
CLI::Option* NoteChoices(CLI::Option* option, const std::vector<std::string>& names, bool list = false);

struct Choices {
  std::vector<std::string> names;  // empty: any value
  bool list = false;
};
const Choices& ChoicesOf(const CLI::Option* option);

}  // namespace hotpack
