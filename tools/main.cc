// The command `hotpack`: one file a subcommand.
#include <algorithm>
#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "tools/commands.h"
#include "tools/run.h"

namespace {

// One line, whatever the reason; options of a subcommand are reported under its name.
int UsageError(const CLI::App& app, const char* first_argument, std::string reason) {
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  auto chosen = app.get_subcommands();
  std::string name = chosen.empty() ? "hotpack" : "hotpack " + chosen[0]->get_name();
  if (chosen.empty() && first_argument != nullptr && first_argument[0] != '-') {
    reason = std::string("there is no command '") + first_argument + "', see hotpack --help";
  }
  fprintf(stderr, "%s: %s\n", name.c_str(), reason.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("hotpack: plans a CUDA job's device memory", "hotpack");
  app.require_subcommand(1);
  app.set_version_flag("--version", "hotpack " HOTPACK_VERSION_TEXT);
  app.footer("Example:\n  hotpack show trace.csv\nhotpack COMMAND --help explains a command.");
  int exit_code = 0;
  hotpack::AddRunCommand(app, &exit_code);
  hotpack::AddReplayCommand(app, &exit_code);
  hotpack::AddPackCommand(app, &exit_code);
  hotpack::AddCompareCommand(app, &exit_code);
  hotpack::AddExportCommand(app, &exit_code);
  hotpack::AddImportCommand(app, &exit_code);
  hotpack::AddVerifyCommand(app, &exit_code);
  hotpack::AddReportCommand(app, &exit_code);
  hotpack::AddShowCommand(app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return UsageError(app, argc > 1 ? argv[1] : nullptr, error.what());
  } catch (const std::exception& error) {
    return UsageError(app, nullptr, error.what());
  }
  return exit_code;
}
