#include "preload/process/options.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "preload/process/debug_tools.h"
#include "preload/process/log.h"
#include "preload/process/option_table.h"

namespace hotpack {

constinit std::atomic<int8_t> known_enabled{-1};

namespace {

constexpr size_t kRows = sizeof(kOptionRows) / sizeof(kOptionRows[0]);

// Copies, since the program may change its environment.
constinit char texts[16384] = {};
constinit size_t texts_used = 0;

enum class Fault : uint8_t { kNone, kMalformed, kTooLong };
struct Row {
  Fault fault;
  const char* value;  // the malformed value; null: too long to be kept
};
constinit Row rows[kRows] = {};
constinit Options options;
constinit std::atomic<bool> ready{false};
constinit std::atomic<bool> warned{false};
constinit pthread_once_t once = PTHREAD_ONCE_INIT;

const char* Keep(const char* value) {
  const size_t size = strlen(value) + 1;
  if (size > sizeof(texts) - texts_used) return nullptr;
  char* kept = texts + texts_used;
  memcpy(kept, value, size);
  texts_used += size;
  return kept;
}

// HOTPACK_ONLY and HOTPACK_EXCEPT: by the executed file, not by argv[0], which the program may choose.
bool IsChosen(const Options& read) {
  if (read.only == nullptr && read.except == nullptr) return true;
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length < 0) return read.only == nullptr;
  path[length] = '\0';
  return (read.only == nullptr || MatchesName(read.only, path)) && !MatchesName(read.except, path);
}

void Read() {
  for (size_t i = 0; i < kRows; ++i) {
    const char* value = getenv(kOptionRows[i].variable);
    if (value == nullptr || value[0] == '\0') continue;
    const char* kept = Keep(value);
    if (kept == nullptr) {
      rows[i].fault = Fault::kTooLong;
    } else if (!kOptionRows[i].parse(kept, &options)) {
      rows[i] = {Fault::kMalformed, kept};
    }
  }
  if (options.enabled && !IsChosen(options)) options.enabled = false;
  if (options.enabled) {
    if (const char* tool = DetectInProcess()) {
      options.enabled = false;
      Log("%s is active: allocations are left to the driver", tool);
    }
  }
  known_enabled.store(options.enabled ? 1 : 0, std::memory_order_release);
  ready.store(true, std::memory_order_release);
}

void WarnOfUnknown() {
  constexpr char kPrefix[] = "HOTPACK";
  constexpr size_t kPrefixLength = sizeof(kPrefix) - 1;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const char* end = strchr(*entry, '=');
    if (end == nullptr || strncmp(*entry, kPrefix, kPrefixLength) != 0) continue;
    const auto length = static_cast<size_t>(end - *entry);
    if (IsKnownVariable(*entry, length)) continue;
    // HOTPACKER belongs to other software; HOTPACK_X is meant for hotpack.
    if (length <= kPrefixLength || (*entry)[kPrefixLength] != '_') continue;
    const char* nearest = NearestVariable(*entry, length);
    const int shown = length < 100 ? static_cast<int>(length) : 100;
    if (nearest != nullptr) {
      Log("%.*s is no option and is ignored; did you mean %s?", shown, *entry, nearest);
    } else {
      Log("%.*s is no option and is ignored; docs/environment.md has them all", shown, *entry);
    }
  }
}

}  // namespace

// pthread_once, no static local: if another thread is in here at a fork, the child begins again. It does not wait for
// that thread, which it lacks (glibc keeps the fork's generation in the pthread_once_t).
const Options& GetOptions() {
  if (!ready.load(std::memory_order_acquire)) [[unlikely]] {
    pthread_once(&once, Read);
  }
  return options;
}

void WarnOfOptions() {
  if (warned.load(std::memory_order_relaxed) || warned.exchange(true)) return;
  GetOptions();
  for (size_t i = 0; i < kRows; ++i) {
    const OptionRow& row = kOptionRows[i];
    if (rows[i].fault == Fault::kMalformed) {
      Log("%s=%.100s is not %s; %s is used", row.variable, rows[i].value, row.values, row.fallback);
    } else if (rows[i].fault == Fault::kTooLong) {
      Log("%s is too long and is ignored", row.variable);
    }
  }
  WarnOfUnknown();
}

}  // namespace hotpack
