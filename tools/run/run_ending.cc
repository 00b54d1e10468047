#include "tools/run/run_ending.h"

#include <signal.h>

#include <cstring>
#include <limits>

#include "tools/cli/count_text.h"
#include "tools/cli/size_text.h"

namespace hotpack {
namespace {

constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();
constexpr int kSignalled = 128;  // an exit code above is this and a signal's number

uint64_t Less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

std::string WouldHelp(const FailedRequest& failed) {
  if (failed.bytes == kUnknown) return "a smaller batch";
  const uint64_t rest = Less(failed.total, failed.free + failed.held);  // the driver, other processes
  const uint64_t needed = failed.live + failed.bytes;
  if (failed.limited != 0 && needed > failed.total) {
    return "a smaller batch, or a limit of " + FormatSize(needed) + " or more";
  }
  if (needed > failed.total) {
    return "a smaller batch, recomputation, or a device of " + FormatSize(needed + rest) + " or more";
  }
  if (needed > Less(failed.total, rest)) {
    return "a smaller batch, or less for other processes and the driver, which have " + FormatSize(rest);
  }
  return "a smaller batch or a larger device: live and asked would fit, but the " +
         FormatSize(Less(failed.held, failed.live)) + " that hotpack has idle are in pieces";
}

}  // namespace

const ProcessStats* EndedWithoutMemory(const std::vector<ProcessStats>& processes, int code) {
  if (code == 0) return nullptr;
  for (const ProcessStats& process : processes) {
    if (process.failed.count > 0 && process.stats.requests <= process.failed.requests) return &process;
  }
  return nullptr;
}

std::string OutOfMemoryText(const FailedRequest& failed) {
  std::string text = "out of memory ";
  text += failed.iterations == 0 ? "before the first step was complete"
                                 : "at step " + std::to_string(failed.iterations + 1);
  text += failed.bytes == kUnknown ? ": the driver found too little" : ": " + FormatSize(failed.bytes) + " asked";
  text += ", " + FormatSize(failed.free) + " free; live " + FormatSize(failed.live) + " of " + FormatSize(failed.total);
  if (failed.limited != 0) text += ", the limit set for the process";
  return text + "; would help: " + WouldHelp(failed);
}

std::string ExitText(int code) {
  if (code == 0) return "";
  const char* name = code > kSignalled ? sigabbrev_np(code - kSignalled) : nullptr;
  if (name != nullptr) return std::string("signal SIG") + name + " ended the program";
  return "the program failed with exit code " + std::to_string(code);
}

std::string FailedRequestsText(const std::vector<ProcessStats>& processes) {
  const FailedRequest* last = nullptr;
  uint64_t count = 0;
  for (const ProcessStats& process : processes) {
    count += process.failed.count;
    if (last == nullptr && process.failed.count > 0) last = &process.failed;
  }
  if (last == nullptr) return "";
  std::string text = CountText(count, "request") + " found no memory";
  if (last->bytes != kUnknown) text += (count > 1 ? ", the last one of " : ", of ") + FormatSize(last->bytes);
  return text;
}

}  // namespace hotpack
