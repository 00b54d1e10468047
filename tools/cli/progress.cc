#include "tools/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/cli/interrupt.h"

namespace hotpack {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kFirst = std::chrono::seconds(1);
constexpr auto kEvery = std::chrono::milliseconds(200);
constexpr char kClear[] = "\r\033[K";

size_t Columns() {
  winsize size = {};
  constexpr size_t kUsual = 80;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

void Write(const std::string& text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

Progress::Progress(std::string what, uint64_t total) : what_(std::move(what)), total_(total) {
  if (isatty(STDERR_FILENO) != 0) thread_ = std::thread([this] { Show(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Progress::Show() {
  const Clock::time_point begin = Clock::now();
  std::unique_lock<std::mutex> lock(mutex_);
  if (ended_.wait_for(lock, kFirst, [this] { return over_; })) return;
  ClearLineAtSignal(true);
  do {
    std::string line = absl::StrCat(what_, ": ");
    if (total_ > 0)
      absl::StrAppend(&line, std::min<uint64_t>(100, done_.load(std::memory_order_relaxed) * 100 / total_), " %, ");
    absl::StrAppend(&line, std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin).count(), " s");
    Write(kClear + line.substr(0, Columns() - 1));
  } while (!ended_.wait_for(lock, kEvery, [this] { return over_; }));
  Write(kClear);
  ClearLineAtSignal(false);
}

}  // namespace hotpack
