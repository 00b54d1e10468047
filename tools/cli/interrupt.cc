#include "tools/cli/interrupt.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>

namespace hotpack {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU};
constexpr int kSlots = 8;

// Read by the handler: a path is complete when its flag is set.
struct Slot {
  std::atomic<bool> armed{false};
  char path[PATH_MAX];
};
Slot slots[kSlots];
std::atomic<bool> clear_line{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// Removes a directory of files. Uses only system calls, as a handler must.
void RemoveDirectory(const char* path) {
  const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  alignas(dirent64) char entries[4096];
  for (long bytes; (bytes = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0;) {
    for (long at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      unlinkat(fd, entry->d_name, 0);
      at += entry->d_reclen;
    }
  }
  close(fd);
  rmdir(path);
}

void CleanUpAndEnd(int number) {
  for (Slot& slot : slots) {
    if (slot.armed && unlink(slot.path) != 0 && errno == EISDIR) RemoveDirectory(slot.path);
  }
  constexpr char kClear[] = "\r\033[K";
  if (clear_line) [[maybe_unused]]
    const ssize_t written = write(STDERR_FILENO, kClear, sizeof(kClear) - 1);
  raise(number);  // SA_RESETHAND: this ends the program by default, once the handler has returned
}

void InstallHandlers() {
  static bool done = false;
  if (done) return;
  done = true;
  for (const int number : kSignals) {
    struct sigaction before;
    if (sigaction(number, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    struct sigaction action = {};
    action.sa_handler = CleanUpAndEnd;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigfillset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

}  // namespace

RemovedAtSignal::RemovedAtSignal(const std::string& path) : slot_(-1) {
  InstallHandlers();
  for (int i = 0; i < kSlots && path.size() < PATH_MAX; ++i) {
    if (slots[i].armed) continue;
    slot_ = i;
    std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
    slots[i].armed = true;
    return;
  }
}

RemovedAtSignal::~RemovedAtSignal() {
  if (slot_ >= 0) slots[slot_].armed = false;
}

void ClearLineAtSignal(bool clear) {
  if (clear) InstallHandlers();
  clear_line = clear;
}

}  // namespace hotpack
