// What is the same for every subcommand that writes a file (docs/command.md):
//
//   - an output that exists is refused without --force;
//   - it is checked before any work is done, and nothing is written until all of it is there (tools/cli/file_sink.h);
//   - "-" is standard output, where the subcommand says so.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hotpack {

// An option that names an output, such as "-o,--out"; the empty name is refused.
CLI::Option* AddOutputOption(CLI::App* command, const std::string& option, std::string* path,
                             const std::string& meaning);

// The flag --force of a subcommand.
CLI::Option* AddForceFlag(CLI::App* command, bool* force);

// "-" as FileSink has it: an empty path.
std::string OutputPath(const std::string& name);

// Whether `path`, the value of `option` (such as "--out"), may be written: it is not the same file as one of `inputs`,
// no directory, not there already unless `force`, and its directory is there and writable. Otherwise the reason, one
// line. Pipes, terminals and devices are no files that could be lost; the empty path (standard output) is always fine,
// and "-", which a subcommand that writes there has made the empty path of, is refused. Touches nothing.
absl::Status CheckOutput(const std::string& option, const std::string& path, bool force,
                         const std::vector<std::string>& inputs = {});

// The same for the recording of a running program, which is a regular file: its end is written to the beginning of it.
absl::Status CheckRecordingOutput(const std::string& option, const std::string& path, bool force);

// Empty if `path` can be written: an existing file that is writable, or a new one in a directory that is. Otherwise the
// reason. Touches nothing.
std::string CheckWritable(const std::string& path);

}  // namespace hotpack
