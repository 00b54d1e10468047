#include "tools/cli/command_line.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <new>
#include <string>

#include "CLI/CLI.hpp"
#include "tools/cli/exit_codes.h"

namespace hotpack {
namespace {

// Returns "hotpack", or with the chosen subcommand.
std::string NameOf(const CLI::App& app) {
  auto chosen = app.get_subcommands();
  return chosen.empty() ? "hotpack" : "hotpack " + chosen[0]->get_name();
}

// Prints one line for any error. Options of a subcommand are reported under its name.
int UsageError(const CLI::App& app, const char* first_argument, std::string reason) {
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  const std::string name = NameOf(app);
  if (name == "hotpack" && first_argument != nullptr && first_argument[0] != '-') {
    reason = std::string("there is no command '") + first_argument + "', see hotpack --help";
  }
  fprintf(stderr, "%s: %s\n", name.c_str(), reason.c_str());
  return kExitBadUse;
}

// Fails the command if its output did not arrive. (A closed reader ends it by SIGPIPE.)
int Finish(const std::string& name, int code) {
  errno = 0;
  std::cout.flush();
  const bool whole = fflush(stdout) == 0 && ferror(stdout) == 0 && std::cout.good();
  if (whole) return code;
  fprintf(stderr, "%s: standard output: cannot be written%s%s\n", name.c_str(), errno != 0 ? ": " : "",
          errno != 0 ? strerror(errno) : "");
  return code == kExitDone ? kExitBadUse : code;
}

int Parse(CLI::App& app, int argc, char** argv, const int& exit_code) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return UsageError(app, argc > 1 ? argv[1] : nullptr, error.what());
  } catch (const std::bad_alloc&) {
    return UsageError(app, nullptr, "there is not enough memory for it");
  } catch (const std::exception& error) {
    return UsageError(app, nullptr, error.what());
  }
  return exit_code;
}

}  // namespace

std::string CommandFooter() {
  std::string text = "Exit codes:\n";
  for (const ExitCode& row : kExitCodes) {
    text += "  " + std::string(row.code) + std::string(9 - strlen(row.code), ' ') + row.meaning + "\n";
  }
  return text + "Example:\n  hotpack show trace.csv\nhotpack COMMAND --help explains a command.";
}

int RunCommandLine(CLI::App& app, int argc, char** argv, const int& exit_code) {
  const int code = Parse(app, argc, argv, exit_code);
  return Finish(NameOf(app), code);
}

}  // namespace hotpack
