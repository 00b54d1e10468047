// The command `hotpack`: one file a subcommand.
#include <cstdio>

#include "CLI/CLI.hpp"
#include "tools/run.h"

int main(int argc, char** argv) {
  CLI::App app("hotpack: plans a CUDA job's device memory");
  app.require_subcommand(1);
  int exit_code = 0;
  hotpack::AddRunCommand(app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    fprintf(stderr, "hotpack: %s\n", error.what());
    return 2;
  }
  return exit_code;
}
