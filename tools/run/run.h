// hotpack run, record, doctor and need: start a program under the preload and report afterwards.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace hotpack {

// Registers the subcommand. When it is chosen, *exit_code becomes the program's exit code, or 128 + signal. Otherwise 2
// (bad options, unwritable output, no device), 126 or 127 (the program cannot be started), 1 (checker reports only).
void AddRunCommand(CLI::App& app, int* exit_code);
void AddRecordCommand(CLI::App& app, int* exit_code);

// As above, except that 0 means that nothing needs fixing, and 1 that something does.
void AddDoctorCommand(CLI::App& app, int* exit_code);

// As above, except that 0 means an answer, 1 that it does not fit (--fits), and 2 also that the program failed.
void AddNeedCommand(CLI::App& app, int* exit_code);

}  // namespace hotpack
