// Reports of the checker: one line each on stderr (the first 20), all of them in SIMGPU_REPORT_FILE.
#pragma once

#include <cstdint>

namespace simgpu {

// Thread-safe; writes at once, so that a process that ends by _exit or a signal has said everything.
// `kind` is a word such as "overlap"; the rest is printf's.
__attribute__((format(printf, 2, 3))) void Report(const char* kind, const char* format, ...);

uint64_t ReportCount();

// What work was seen: kernels whose parameters are known (so that what they are handed is checked) or not, and calls of
// shimmed libraries that tell all they use or not.
enum class Counted { kKernelKnown, kKernelNotKnown, kCallTold, kCallNotTold };
constexpr int kCountedKinds = 4;

// Thread-safe.
void CountWork(Counted kind);

// The line with the total, at the end of the process: nothing without a report and without a report file. The file also
// gets a line with the work that was counted.
void FinishReports();

}  // namespace simgpu
