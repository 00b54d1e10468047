// The command `hotpack`: one file a subcommand.
#include <algorithm>
#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "tools/commands.h"
#if __has_include("tools/run.h")
#include "tools/run.h"
#endif

int main(int argc, char** argv) {
  CLI::App app("hotpack: plans a CUDA job's device memory", "hotpack");
  app.require_subcommand(1);
  app.set_version_flag("--version", "hotpack " HOTPACK_VERSION_TEXT);
  app.footer("Example:\n  hotpack show trace.csv\n'hotpack COMMAND --help' explains a command.");
  int exit_code = 0;
#if __has_include("tools/run.h")
  hotpack::AddRunCommand(app, &exit_code);
#endif
  hotpack::AddReplayCommand(app, &exit_code);
  hotpack::AddPackCommand(app, &exit_code);
  hotpack::AddShowCommand(app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::string reason = error.what();
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    auto chosen = app.get_subcommands();
    fprintf(stderr, "hotpack%s%s: %s\n", chosen.empty() ? "" : " ", chosen.empty() ? "" : chosen[0]->get_name().c_str(),
            reason.c_str());
    return 2;
  }
  return exit_code;
}
