// The one table of exit codes of `hotpack`, for the command's help, its man page and the subcommands. docs/command.md
// has the same rows, and a test compares the two.
#pragma once

namespace hotpack {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitBadUse = 2;

struct ExitCode {
  const char* code;
  const char* meaning;
};

inline constexpr ExitCode kExitCodes[] = {
    {"0", "done"},
    {"1",
     "it was done and failed: what was to be checked is not valid, a replay went wrong, the simulated device's checker "
     "has reports, doctor found something to do, more memory than --fail-above"},
    {"2", "bad options, input that cannot be read, output that cannot be written, nothing to work with"},
    {"3", "pack --capacity: it is proved that there is no such placement"},
    {"4", "pack --capacity: neither found nor refuted in the time given"},
    {"126", "run, record, doctor: the program is there and cannot be started"},
    {"127", "run, record, doctor: there is no such program"},
    {"128 + N", "ended by signal N (Ctrl-C: 130); of run and record also: the program was"},
};

}  // namespace hotpack
