// The one table of options. The flag of `hotpack run` is the variable's name in lower case without HOTPACK_.
// docs/environment.md holds the same rows, and a test compares the two.
//
// A new option needs a row here, a member of Options, a Parse function in option_table.cc (nothing links without), and
// a row in docs/environment.md.
#pragma once

#include <cstddef>

#include "preload/process/options.h"

namespace hotpack {

// X(name of the parse function, variable, flag of `hotpack run` ("": none), values, default, meaning)
// `values` appears in the warning about a malformed value: "HOTPACK_ARENA=x is not <values>; <default> is used".
#define HOTPACK_OPTIONS(X)                                                                                             \
  X(Enabled, "HOTPACK", "", "0, 1 or record", "1",                                                                     \
    "`0` turns hotpack off: every hook hands on what it gets; `record` serves nothing, and writes `HOTPACK_TRACE`")    \
  X(Algorithm, "HOTPACK_ALGORITHM", "--algorithm",                                                                     \
    "search, chen, echo, dtr, knapsack, dqn, memonger, superneurons or tflms", "search",                               \
    "which planner decides what a budget moves and computes again (`budget.md`)")                                      \
  X(Alignment, "HOTPACK_ALIGNMENT", "--alignment", "a power of two from 512 to 65536", "512",                          \
    "blocks of 1 MiB and more begin at multiples of this many bytes; some ways of GPUDirect RDMA need 65536")          \
  X(Arena, "HOTPACK_ARENA", "--arena", "auto, vmm, plain or plain:MEBIBYTES", "auto",                                  \
    "what the arena is made of: virtual memory management, or one `cuMemAlloc`; auto is vmm where copies allow it")    \
  X(Budget, "HOTPACK_BUDGET", "--budget", "a size such as 7.5GiB, a share such as 60%, activations:50%, 0 or none",    \
    "none", "what a training step in PyTorch may take: its saved tensors and optimizer state are moved (`budget.md`)") \
  X(Cupti, "HOTPACK_CUPTI", "--cupti", "a number of iterations, or all", "none",                                       \
    "with a trace: for how many iterations served by the plan kernel times are recorded by CUPTI (`collectors.md`)")   \
  X(Debug, "HOTPACK_DEBUG", "--debug", "guard, guard:BYTES, poison, or both with a comma", "none",                     \
    "debug mode: gaps around blocks that are looked at, released memory overwritten")                                  \
  X(Doctor, "HOTPACK_DOCTOR", "", "a directory", "none",                                                               \
    "where each process leaves what `hotpack doctor` reads, as `doctor.<pid>`")                                        \
  X(DriverCallers, "HOTPACK_DRIVER_CALLERS", "--driver-callers", "a list of patterns, or + and one, or none",          \
    "libnccl.so*,libuct*.so*,libnvshmem*.so*",                                                                         \
    "libraries whose `cuMemAlloc` requests are left to the driver, by file name; `+` adds to the default")             \
  X(Envelope, "HOTPACK_ENVELOPE", "--envelope", "0 or 1", "1",                                                         \
    "whether jobs whose iterations differ are served by an envelope, if they mark them (`envelope.md`)")               \
  X(Except, "HOTPACK_EXCEPT", "--except", "a list of patterns", "none",                                                \
    "programs that are left alone, by executable name: patterns of `*` and `?` with commas between")                   \
  X(FreeSync, "HOTPACK_FREE_SYNC", "--free-sync", "auto or always", "auto",                                            \
    "when `cuMemFree` waits for the device: where order needs it, or always")                                          \
  X(Handle, "HOTPACK_HANDLE", "--handle", "MEBIBYTES or MEBIBYTES:PART", "128:256",                                    \
    "how large the arena's driver handles may be: a power of two, and at most 1/PART of the memory held")              \
  X(InterruptRange, "HOTPACK_INTERRUPT_RANGE", "--interrupt-range", "a list of patterns", "none",                      \
    "ranges (NVTX) in which monitoring is interrupted: patterns of `*` and `?` with commas between (`collectors.md`)") \
  X(Ipc, "HOTPACK_IPC", "--ipc", "sizes in bytes with commas between", "none",                                         \
    "`cuMemAlloc` requests of these sizes are left to the driver, for blocks shared by `cuIpcGetMemHandle`")           \
  X(IterationRange, "HOTPACK_ITERATION_RANGE", "--iteration-range", "a list of patterns", "none",                      \
    "ranges and marks (NVTX) that each begin an iteration: patterns of `*` and `?` with commas between")               \
  X(Launches, "HOTPACK_LAUNCHES", "--launches", "0 or 1", "0",                                                         \
    "whether a trace holds the launches of kernels, copies and memsets, with the blocks they name (`collectors.md`)")  \
  X(Limit, "HOTPACK_LIMIT", "--limit", "a size such as 300M, 8G or 24GB", "none",                                      \
    "the most memory that hotpack takes of each device: requests beyond it fail as on a smaller device")               \
  X(NvtxNext, "HOTPACK_NVTX_NEXT", "", "a library", "none",                                                            \
    "the NVTX injection library that ranges are handed on to; `hotpack run` sets it where there was one")              \
  X(Only, "HOTPACK_ONLY", "--only", "a list of patterns", "all programs",                                              \
    "the only programs that are served, by executable name: patterns of `*` and `?` with commas between")              \
  X(Overcommit, "HOTPACK_OVERCOMMIT", "--overcommit", "off, managed or managed:MEBIBYTES", "off",                      \
    "whether blocks that the device has no room for may lie in managed memory while no plan is in force")              \
  X(PageWait, "HOTPACK_PAGE_WAIT", "--page-wait", "a number of milliseconds, or none", "1000",                         \
    "how long a request waits for work on idle pages that could move, before it takes new ones; none: without limit")  \
  X(PeerCopies, "HOTPACK_PEER_COPIES", "--peer-copies", "0 or 1", "1",                                                 \
    "whether copies between devices that have no access name their contexts, so that the driver stages them")          \
  X(Plan, "HOTPACK_PLAN", "--plan", "a file", "none", "where the plan is kept from run to run (`plan_format.md`)")     \
  X(ReleaseEvents, "HOTPACK_RELEASE_EVENTS", "--release-events", "0 or 1", "1",                                        \
    "whether events at releases tell the work that may still use a block from later work, while no plan serves")       \
  X(StatsDir, "HOTPACK_STATS_DIR", "", "a directory", "none",                                                          \
    "where each process keeps its figures while it runs, for `hotpack top`, as `stats.<pid>` "                         \
    "(`libhotpack.so`: `stats.<pid>.library`)")                                                                        \
  X(StreamEdges, "HOTPACK_STREAM_EDGES", "--stream-edges", "avoid, avoid:PERCENT or keep", "avoid:2",                  \
    "whether plans are packed so that few blocks make a stream wait for another one, and how much higher they may be") \
  X(Trace, "HOTPACK_TRACE", "--trace", "a file", "none", "where the event trace is written to (`trace_format.md`)")    \
  X(TraceLimit, "HOTPACK_TRACE_LIMIT_MB", "--trace-limit-mb", "a number of mebibytes", "8192",                         \
    "largest size of that file; recording stops there and the file stays valid")                                       \
  X(WaitPlan, "HOTPACK_WAIT_PLAN", "--wait-plan", "0 or 1", "0",                                                       \
    "whether plans come in logical time: a request that asks for one waits for it; `--simulate` sets it")

struct OptionRow {
  const char* variable;
  const char* flag;  // "": `hotpack run` has none
  const char* values;
  const char* fallback;
  const char* meaning;
  // Sets the option to `value` and returns true. Returns false, and sets nothing, if the value is malformed. `value`
  // must live as long as *options.
  bool (*parse)(const char* value, Options* options);
};

#define HOTPACK_DECLARE_PARSE(name, ...) bool Parse##name(const char* value, Options* options);
HOTPACK_OPTIONS(HOTPACK_DECLARE_PARSE)
#undef HOTPACK_DECLARE_PARSE

#define HOTPACK_OPTION_ROW(name, variable, flag, values, fallback, meaning) \
  {variable, flag, values, fallback, meaning, &Parse##name},
inline constexpr OptionRow kOptionRows[] = {HOTPACK_OPTIONS(HOTPACK_OPTION_ROW)};
#undef HOTPACK_OPTION_ROW

// Returns whether a part of hotpack reads variable `name` (`length` characters): a row, or one of the build and the
// tests.
bool IsKnownVariable(const char* name, size_t length);

// Returns the row's variable nearest to `name` by edit distance; null if none is near enough to be meant.
const char* NearestVariable(const char* name, size_t length);

// Returns whether the file name of `path` matches one of `patterns` (comma-separated; `*` any characters, `?` one).
// Null `patterns`: false. No heap.
bool MatchesName(const char* patterns, const char* path);

// As MatchesName, for all of `text`.
bool MatchesPattern(const char* patterns, const char* text);

}  // namespace hotpack
