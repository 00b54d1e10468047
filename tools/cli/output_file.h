// Rules of every subcommand that writes a file (docs/command.md):
//
// 1. An existing output is refused without --force.
// 2. The output is checked before any work, and written only when it is complete (tools/cli/file_sink.h).
// 3. "-" is standard output, where the subcommand supports it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hotpack {

// Adds an option that names an output, such as "-o,--out". Refuses the empty name.
CLI::Option* AddOutputOption(CLI::App* command, const std::string& option, std::string* path,
                             const std::string& meaning);

// Adds the flag --force of a subcommand.
CLI::Option* AddForceFlag(CLI::App* command, bool* force);

// Returns FileSink's path for `name`: empty for "-".
std::string OutputPath(const std::string& name);

// Checks whether `path`, the value of `option` (such as "--out"), may be written. Touches nothing. The error is one
// line:
//  - it is the same file as one of `inputs`, or a directory;
//  - it exists, without `force`. Pipes, terminals and devices do not count;
//  - its directory is missing or not writable;
//  - it is "-": subcommands that write to standard output have made it the empty path, which is always allowed.
absl::Status CheckOutput(const std::string& option, const std::string& path, bool force,
                         const std::vector<std::string>& inputs = {});

// As CheckOutput, for the recording of a running program. That must be a regular file: its end changes its beginning.
absl::Status CheckRecordingOutput(const std::string& option, const std::string& path, bool force);

// Returns an empty string if `path` can be written: a writable file, or a new one in a writable directory. Otherwise
// returns the reason. Touches nothing.
std::string CheckWritable(const std::string& path);

}  // namespace hotpack
