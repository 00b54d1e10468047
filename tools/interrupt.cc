#include "tools/interrupt.h"

#include <csignal>

namespace hotpack {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
struct sigaction previous[3];
std::atomic<bool> interrupted{false};
std::atomic<int> which{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void Note(int number) {
  which = number;
  interrupted = true;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  for (size_t i = 0; i < 3; ++i) {
    struct sigaction action = {};
    action.sa_handler = Note;
    sigemptyset(&action.sa_mask);
    action.sa_flags = 0;  // so that a read from a pipe ends
    sigaction(kSignals[i], nullptr, &previous[i]);
    if (previous[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < 3; ++i) sigaction(kSignals[i], &previous[i], nullptr);
}

void InterruptGuard::EndIfInterrupted() {
  if (!interrupted) return;
  std::signal(which, SIG_DFL);
  std::raise(which);
}

bool Interrupted() { return interrupted; }
const std::atomic<bool>* InterruptFlag() { return &interrupted; }

}  // namespace hotpack
