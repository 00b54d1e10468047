// The subcommands of `hotpack` except `run` (tools/run/run.h) and `plan` (tools/commands/plan.h). Each adds itself to
// `app`. When it was chosen and has run, *exit_code is its result: 0, 1 (it failed), or 2 (bad options, bad input,
// nothing to work with).
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace hotpack {

void AddCompareCommand(CLI::App& app, int* exit_code);
void AddDiffCommand(CLI::App& app, int* exit_code);
void AddExportCommand(CLI::App& app, int* exit_code);
void AddImportCommand(CLI::App& app, int* exit_code);
void AddPackCommand(CLI::App& app, int* exit_code);
void AddReplayCommand(CLI::App& app, int* exit_code);
void AddReportCommand(CLI::App& app, int* exit_code);
void AddShowCommand(CLI::App& app, int* exit_code);
void AddTopCommand(CLI::App& app, int* exit_code);
void AddVerifyCommand(CLI::App& app, int* exit_code);

}  // namespace hotpack
