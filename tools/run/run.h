// hotpack run, record and doctor: start a program under the preload and report afterwards.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace hotpack {

// Registers the subcommand. When it is chosen, *exit_code becomes the program's exit code, 128 + signal, or 2 (bad
// options, unwritable output, nothing to run on), 126 or 127 (the program cannot be started), 1 (checker reports only).
void AddRunCommand(CLI::App& app, int* exit_code);
void AddRecordCommand(CLI::App& app, int* exit_code);

// The same, but that 0 means that there is nothing to be done, and 1 that there is.
void AddDoctorCommand(CLI::App& app, int* exit_code);

}  // namespace hotpack
