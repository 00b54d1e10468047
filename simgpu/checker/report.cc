#include "simgpu/checker/report.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace simgpu {
namespace {

constexpr uint64_t kShown = 20;  // on stderr; the file gets all

std::atomic<uint64_t> count{0};
std::atomic<uint64_t> work[kCountedKinds];

void WriteAll(int fd, const char* text, int length) {
  while (length > 0) {
    const ssize_t written = write(fd, text, length);
    if (written <= 0) return;
    text += written;
    length -= static_cast<int>(written);
  }
}

void AppendToFile(const char* text, int length) {
  const char* path = getenv("SIMGPU_REPORT_FILE");
  if (path == nullptr || *path == '\0') return;
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return;
  WriteAll(fd, text, length);
  close(fd);
}

}  // namespace

void CountWork(Counted kind) { work[static_cast<int>(kind)].fetch_add(1, std::memory_order_relaxed); }

uint64_t ReportCount() { return count.load(); }

void Report(const char* kind, const char* format, ...) {
  char line[512];
  int length = snprintf(line, sizeof line, "simgpu: REPORT %s: ", kind);
  va_list arguments;
  va_start(arguments, format);
  length += vsnprintf(line + length, sizeof line - length, format, arguments);
  va_end(arguments);
  length = std::min<int>(length, sizeof line - 2);
  line[length++] = '\n';
  const uint64_t number = ++count;
  if (number <= kShown) WriteAll(STDERR_FILENO, line, length);
  if (number == kShown + 1) {
    constexpr char kMore[] =
        "simgpu: more reports follow; they are counted, and written to SIMGPU_REPORT_FILE if that is set\n";
    WriteAll(STDERR_FILENO, kMore, sizeof kMore - 1);
  }
  AppendToFile(line, length);
}

void FinishReports() {
  char line[128];
  const uint64_t total = count.load();
  const int length = snprintf(line, sizeof line, "simgpu: process %d: %llu reports\n", static_cast<int>(getpid()),
                              static_cast<unsigned long long>(total));
  if (total > 0) WriteAll(STDERR_FILENO, line, length);
  AppendToFile(line, length);
  unsigned long long counted[kCountedKinds];
  for (int i = 0; i < kCountedKinds; ++i) counted[i] = work[i].load();
  char work_line[256];
  const int work_length = snprintf(
      work_line, sizeof work_line,
      "simgpu: process %d: %llu kernels with known parameters, %llu without; %llu library calls told, %llu not\n",
      static_cast<int>(getpid()), counted[0], counted[1], counted[2], counted[3]);
  AppendToFile(work_line, work_length);
}

}  // namespace simgpu
