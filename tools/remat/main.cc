// hotpack-remat: what `hotpack plan` starts. It is a program of its own, so that `hotpack` builds and starts without
// the planners.
#include "CLI/CLI.hpp"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_codes.h"
#include "tools/remat/plan_commands.h"

int main(int argc, char** argv) {
  CLI::App app("hotpack: plans a CUDA job's device memory", "hotpack");
  app.require_subcommand(1);
  app.set_version_flag("--version", "hotpack " HOTPACK_VERSION_TEXT);
  app.footer(hotpack::CommandFooter());
  int exit_code = hotpack::kExitDone;
  hotpack::AddPlanCommand(app,
                          {.plan = hotpack::RunPlan,
                           .verify = hotpack::RunPlanVerify,
                           .export_model = hotpack::ExportPlanModel,
                           .solved = hotpack::ReadPlanSolution},
                          &exit_code);
  return hotpack::RunCommandLine(app, argc, argv, exit_code);
}
