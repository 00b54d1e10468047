// What `hotpack --help` lists.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace hotpack_test {

// Returns the subcommands in `help`: lines that are indented by two, begin with a letter and stand before the examples.
inline std::vector<std::string> SubcommandsIn(const std::string& help) {
  std::vector<std::string> names;
  std::istringstream lines(help.substr(0, help.find("\nExamples:")));
  for (std::string line, name; std::getline(lines, line);) {
    const bool listed = line.size() > 3 && line.compare(0, 2, "  ") == 0 && line[2] >= 'a' && line[2] <= 'z';
    if (listed && std::istringstream(line) >> name) names.push_back(name);
  }
  return names;
}

}  // namespace hotpack_test
