// The command `hotpack`: one file per subcommand.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <new>
#include <string>

#include "CLI/CLI.hpp"
#include "tools/cli/commands.h"
#include "tools/cli/exit_codes.h"
#include "tools/commands/help.h"
#include "tools/run/run.h"

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
  return hotpack::kExitBadUse;
}

// Fails the command if its output did not arrive. (A closed reader ends it by SIGPIPE.)
int Finish(const std::string& name, int code) {
  errno = 0;
  std::cout.flush();
  const bool whole = fflush(stdout) == 0 && ferror(stdout) == 0 && std::cout.good();
  if (whole) return code;
  fprintf(stderr, "%s: standard output: cannot be written%s%s\n", name.c_str(), errno != 0 ? ": " : "",
          errno != 0 ? strerror(errno) : "");
  return code == hotpack::kExitDone ? hotpack::kExitBadUse : code;
}

std::string Footer() {
  std::string text = "Exit codes:\n";
  for (const hotpack::ExitCode& row : hotpack::kExitCodes) {
    text += "  " + std::string(row.code) + std::string(9 - strlen(row.code), ' ') + row.meaning + "\n";
  }
  return text + "Example:\n  hotpack show trace.csv\nhotpack COMMAND --help explains a command.";
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

int main(int argc, char** argv) {
  CLI::App app("hotpack: plans a CUDA job's device memory", "hotpack");
  app.require_subcommand(1);
  app.set_version_flag("--version", "hotpack " HOTPACK_VERSION_TEXT);
  app.footer(Footer());
  int exit_code = hotpack::kExitDone;
  hotpack::AddRunCommand(app, &exit_code);
  hotpack::AddRecordCommand(app, &exit_code);
  hotpack::AddDoctorCommand(app, &exit_code);
  hotpack::AddReplayCommand(app, &exit_code);
  hotpack::AddCompareCommand(app, &exit_code);
  hotpack::AddPackCommand(app, &exit_code);
  hotpack::AddPlanCommand(app, &exit_code);
  hotpack::AddExportCommand(app, &exit_code);
  hotpack::AddImportCommand(app, &exit_code);
  hotpack::AddVerifyCommand(app, &exit_code);
  hotpack::AddReportCommand(app, &exit_code);
  hotpack::AddShowCommand(app, &exit_code);
  hotpack::AddHelpCommand(app, HOTPACK_VERSION_TEXT, &exit_code);
  const int code = Parse(app, argc, argv, exit_code);
  return Finish(NameOf(app), code);
}
