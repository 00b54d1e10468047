// The command `hotpack`: one file per subcommand.
#include <cstring>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "tools/cli/command_line.h"
#include "tools/cli/commands.h"
#include "tools/cli/exit_codes.h"
#include "tools/commands/help.h"
#include "tools/commands/plan.h"
#include "tools/run/run.h"

namespace {

// The commands by task, in the order of --help.
const std::pair<const char*, std::vector<const char*>> kGroups[] = {
    {"Run a program", {"need", "run", "record", "top", "doctor"}},
    {"Look at a recording", {"show", "report", "compare", "diff"}},
    {"Solve", {"pack", "plan", "verify"}},
    {"Convert and play", {"import", "export", "replay"}},
    {"Help", {"help"}},
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("hotpack: plans a CUDA job's device memory", "hotpack");
  app.require_subcommand(1);
  app.set_version_flag("--version", "hotpack " HOTPACK_VERSION_TEXT);
  app.footer(hotpack::CommandFooter());
  static char plan[] = "plan";  // `hotpack remat` is the same, in the field's word
  if (argc > 1 && strcmp(argv[1], "remat") == 0) argv[1] = plan;
  int exit_code = hotpack::kExitDone;
  hotpack::AddNeedCommand(app, &exit_code);
  hotpack::AddRunCommand(app, &exit_code);
  hotpack::AddRecordCommand(app, &exit_code);
  hotpack::AddTopCommand(app, &exit_code);
  hotpack::AddDoctorCommand(app, &exit_code);
  hotpack::AddShowCommand(app, &exit_code);
  hotpack::AddReportCommand(app, &exit_code);
  hotpack::AddCompareCommand(app, &exit_code);
  hotpack::AddDiffCommand(app, &exit_code);
  hotpack::AddPackCommand(app, &exit_code);
  hotpack::AddStartedPlanCommand(app, argv, &exit_code);
  hotpack::AddVerifyCommand(app, &exit_code);
  hotpack::AddImportCommand(app, &exit_code);
  hotpack::AddExportCommand(app, &exit_code);
  hotpack::AddReplayCommand(app, &exit_code);
  hotpack::AddHelpCommand(app, HOTPACK_VERSION_TEXT, &exit_code);
  for (const auto& [group, names] : kGroups) {
    for (const char* name : names) app.get_subcommand(name)->group(group);
  }
  return hotpack::RunCommandLine(app, argc, argv, exit_code);
}
