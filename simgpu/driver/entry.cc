#include "simgpu/driver/entry.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "simgpu/checker/report.h"

namespace simgpu {

// One clause of SIMGPU_FAIL.
struct FailRule {
  uint64_t first = 0;    // this call …
  bool onwards = false;  // … and every later one
  uint64_t every = 0;    // or every so many calls
  int error = 0;
};

struct CallCounter {
  std::string base;
  std::atomic<uint64_t> calls{0};
  std::vector<FailRule> rules;
};

namespace {

constexpr int kOutOfMemory = 2, kNotInitialized = 3, kDeinitialized = 4, kUnknown = 999;
constexpr int kExitWithReports = 97;

std::atomic<bool> initialized{false};
std::atomic<bool> shut_down{false};
std::atomic<bool> forked{false};

std::mutex& CountersLock() {
  static std::mutex* lock = new std::mutex;
  return *lock;
}

std::map<std::string, CallCounter*>& Counters() {
  static auto* counters = new std::map<std::string, CallCounter*>;
  return *counters;
}

bool IsAllocation(const std::string& base) {
  return base.starts_with("cuMemAlloc") || base == "cuMemCreate" || base == "cuMemHostAlloc" ||
         base == "cuMemAddressReserve" || base == "cuMemMap" || base == "cuArrayCreate" || base == "cuMemPoolCreate";
}

// "3", "5+" or "every:7", then perhaps "=700".
bool ParseRule(std::string text, int usual_error, FailRule* rule) {
  rule->error = usual_error;
  const size_t equals = text.find('=');
  if (equals != std::string::npos) {
    rule->error = atoi(text.c_str() + equals + 1);
    text.resize(equals);
    if (rule->error <= 0) return false;
  }
  char* end = nullptr;
  if (text.starts_with("every:")) {
    rule->every = strtoull(text.c_str() + 6, &end, 10);
    return rule->every > 0 && *end == '\0';
  }
  rule->first = strtoull(text.c_str(), &end, 10);
  if (*end == '+') {
    rule->onwards = true;
    ++end;
  }
  return rule->first > 0 && *end == '\0';
}

// SIMGPU_FAIL="cuMemCreate:3,cuMemMap:5+,cuMemAlloc:every:7=700": the rules for `base`.
std::vector<FailRule> RulesFor(const std::string& base) {
  std::vector<FailRule> rules;
  const char* all = getenv("SIMGPU_FAIL");
  std::string rest = all == nullptr ? "" : all;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string clause = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    const size_t colon = clause.find(':');
    FailRule rule;
    if (colon == std::string::npos ||
        !ParseRule(clause.substr(colon + 1), IsAllocation(base) ? kOutOfMemory : kUnknown, &rule)) {
      fprintf(stderr, "simgpu: SIMGPU_FAIL: '%s' is not NAME:COUNT, NAME:COUNT+ or NAME:every:COUNT (with =ERROR)\n",
              clause.c_str());
      _exit(2);
    }
    if (clause.substr(0, colon) == base) rules.push_back(rule);
  }
  return rules;
}

void WriteCounts() {
  const char* path = getenv("SIMGPU_COUNT_FILE");
  if (path == nullptr || *path == '\0') return;
  FILE* file = fopen(path, "we");
  if (file == nullptr) return;
  std::lock_guard<std::mutex> lock(CountersLock());
  for (const auto& [base, counter] : Counters()) {
    fprintf(file, "%s %llu\n", base.c_str(), static_cast<unsigned long long>(counter->calls.load()));
  }
  fclose(file);
}

// The report at the end of the process has two conditions here: the exit status is known to on_exit handlers only, and
// calls of other libraries' destructors still come until ours runs. Which of the two is first depends on how the
// library was loaded.
int exit_status = -1;  // -1: not known
bool destroyed = false;

void EndProcess() {
  if (exit_status < 0 || !destroyed || forked.load()) return;
  if (IsInitialized()) {
    WriteCounts();
    FinishReports();
  }
  if (exit_status == 0 && ReportCount() > 0) {
    fflush(nullptr);
    _exit(kExitWithReports);
  }
}

void NoteExitStatus(int status, void*) {
  exit_status = status;
  EndProcess();
}

// In the child nothing but refusals is left to do: no lock of the parent's threads may be in the way.
void NoteFork() {
  forked.store(true);
  new (&CountersLock()) std::mutex;
}

__attribute__((constructor)) void Load() {
  on_exit(NoteExitStatus, nullptr);
  pthread_atfork(nullptr, nullptr, NoteFork);
  RulesFor("");  // a malformed SIMGPU_FAIL is said at once
}

__attribute__((destructor)) void Unload() {
  shut_down.store(true);
  destroyed = true;
  EndProcess();
}

}  // namespace

EntryPoint::EntryPoint(const char* base) {
  std::lock_guard<std::mutex> lock(CountersLock());
  CallCounter*& counter = Counters()[base];
  if (counter == nullptr) {
    counter = new CallCounter;
    counter->base = base;
    counter->rules = RulesFor(base);
  }
  counter_ = counter;
}

int EntryPoint::Enter(bool needs_init) {
  if (shut_down.load(std::memory_order_relaxed)) return kDeinitialized;
  if (needs_init && (!initialized.load(std::memory_order_acquire) || forked.load(std::memory_order_relaxed))) {
    return kNotInitialized;
  }
  const uint64_t call = counter_->calls.fetch_add(1, std::memory_order_relaxed) + 1;
  for (const FailRule& rule : counter_->rules) {
    if (rule.every > 0 ? call % rule.every == 0 : (call == rule.first || (rule.onwards && call > rule.first))) {
      return rule.error;
    }
  }
  return 0;
}

// The end begins where static objects that are older than cuInit are destroyed, as with the real driver.
void SetInitialized() {
  if (!initialized.exchange(true)) atexit([] { shut_down.store(true); });
}
bool IsInitialized() { return initialized.load(std::memory_order_acquire) && !forked.load(std::memory_order_relaxed); }
bool IsShutDown() { return shut_down.load(); }

}  // namespace simgpu
