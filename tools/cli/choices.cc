#include "tools/cli/choices.h"

#include <map>

#include "CLI/CLI.hpp"

namespace hotpack {
namespace {

std::map<const CLI::Option*, Choices>& Noted() {
  static std::map<const CLI::Option*, Choices> noted;
  return noted;
}

}  // namespace

CLI::Option* NoteChoices(CLI::Option* option, const std::vector<std::string>& names, bool list) {
  Noted()[option] = {names, list};
  return option;
}

const Choices& ChoicesOf(const CLI::Option* option) {
  static const Choices none;
  const auto noted = Noted().find(option);
  return noted == Noted().end() ? none : noted->second;
}

}  // namespace hotpack
