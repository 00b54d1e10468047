#include "tools/commands/plan.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "CLI/CLI.hpp"
#include "tools/cli/exit_codes.h"
#include "tools/cli/plan_program.h"
#include "tools/remat/plan_command.h"

namespace hotpack {
namespace {

// Does not return if it could be started.
int Start(char** argv) {
  const std::string path = PlanProgram();
  execv(path.c_str(), argv);
  fprintf(stderr, "hotpack plan: %s, which plans, cannot be started: %s\n", path.c_str(), strerror(errno));
  return kExitBadUse;
}

}  // namespace

void AddStartedPlanCommand(CLI::App& app, char** argv, int* exit_code) {
  const auto start = [argv](const auto&) { return Start(argv); };
  AddPlanCommand(app, {.plan = start, .verify = start, .export_model = start, .solved = start}, exit_code);
}

}  // namespace hotpack
