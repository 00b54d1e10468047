#include "simgpu/driver/entry.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "simgpu/checker/report.h"
#include "simgpu/checker/virtual_time.h"
#include "simgpu/driver/caller.h"
#include "simgpu/driver/delay.h"
#include "simgpu/driver/time_costs.h"

namespace simgpu {

// One clause of SIMGPU_FAIL, with its count of calls.
struct FailRule {
  std::string base;      // "any": calls of every name, counted together
  std::string object;    // calls from objects with this in their file name; empty: from everywhere
  bool others = false;   // ... from all other objects
  uint64_t first = 0;    // this call …
  bool onwards = false;  // … and every later one
  uint64_t every = 0;    // or every call whose number is a multiple of this
  int error = 0;         // 0: the function's usual one
  std::atomic<uint64_t> calls{0};

  // No call that comes can fail.
  bool Done() const { return every == 0 && !onwards && calls.load(std::memory_order_relaxed) >= first; }
};

struct CallCounter {
  std::string base;
  int usual_error = 0;
  std::atomic<uint64_t> calls{0};
  std::vector<FailRule*> rules;
  CallTime time;
  std::map<std::string, uint64_t> callers;  // calls of each object, if counted; under the counters' lock
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
bool ParseCalls(std::string text, FailRule* rule) {
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

// Parses "cuMemMap" or "any", then perhaps "@hotpack" or "@!hotpack", then ":" and the calls.
bool ParseRule(const std::string& clause, FailRule* rule) {
  const size_t colon = clause.find(':');
  if (colon == std::string::npos) return false;
  rule->base = clause.substr(0, colon);
  const size_t at = rule->base.find('@');
  if (at != std::string::npos) {
    rule->object = rule->base.substr(at + 1);
    rule->base.resize(at);
    rule->others = rule->object.starts_with("!");
    if (rule->others) rule->object.erase(0, 1);
    if (rule->object.empty()) return false;
  }
  return ParseCalls(clause.substr(colon + 1), rule);
}

// "cuMemCreate:3,cuMemMap:5+,any@hotpack:12"
std::deque<FailRule> ParseRules(std::string rest) {
  std::deque<FailRule> rules;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string clause = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    if (!ParseRule(clause, &rules.emplace_back())) {
      fprintf(stderr,
              "simgpu: SIMGPU_FAIL: '%s' is not NAME:COUNT, NAME:COUNT+ or NAME:every:COUNT (with @OBJECT or @!OBJECT "
              "after the name, and =ERROR at the end)\n",
              clause.c_str());
      _exit(2);
    }
  }
  return rules;
}

// The process's rules, as set at its first call.
std::deque<FailRule>& Rules() {
  static auto* rules = [] {
    const char* all = getenv("SIMGPU_FAIL");
    return new std::deque<FailRule>(ParseRules(all == nullptr ? "" : all));
  }();
  return *rules;
}

bool CountsCallers() {
  static const bool counts = [] {
    const char* value = getenv("SIMGPU_COUNT_CALLERS");
    return value != nullptr && strcmp(value, "1") == 0;
  }();
  return counts;
}

void WriteCounts() {
  const char* path = getenv("SIMGPU_COUNT_FILE");
  if (path == nullptr || *path == '\0') return;
  FILE* file = fopen(path, "we");
  if (file == nullptr) return;
  std::lock_guard<std::mutex> lock(CountersLock());
  for (const auto& [base, counter] : Counters()) {
    fprintf(file, "%s %llu\n", base.c_str(), static_cast<unsigned long long>(counter->calls.load()));
    for (const auto& [object, calls] : counter->callers) {
      fprintf(file, "%s@%s %llu\n", base.c_str(), object.c_str(), static_cast<unsigned long long>(calls));
    }
  }
  fclose(file);
}

// The report at the end of the process has two conditions here. Only on_exit handlers know the exit status. Calls of
// other libraries' destructors still come until this library's run. Which of the two is first depends on how the
// library was loaded.
int exit_status = -1;  // -1: unknown
bool destroyed = false;

void EndProcess() {
  if (exit_status < 0 || !destroyed || forked.load()) return;
  if (IsInitialized()) {
    WriteCounts();
    FinishReports();
    FinishTimes(TimesByName());
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

// The child only refuses calls, and must not wait for a lock of the parent's threads. Before cuInit a fork has no
// effect.
void NoteFork() {
  if (IsInitialized()) forked.store(true);
  new (&CountersLock()) std::mutex;
}

// Reports a malformed SIMGPU_FAIL at once. Keeps nothing: a program may set it up to its first call.
void CheckRules() {
  const char* all = getenv("SIMGPU_FAIL");
  if (all != nullptr && *all != '\0') (void)ParseRules(all);
}

__attribute__((constructor)) void Load() {
  on_exit(NoteExitStatus, nullptr);
  pthread_atfork(nullptr, nullptr, NoteFork);
  CheckRules();
  ReadDelay();
}

__attribute__((destructor)) void Unload() {
  shut_down.store(true);
  destroyed = true;
  EndProcess();
}

}  // namespace

CallCounter* EntryPoint::Counter() {
  if (CallCounter* known = counter_.load(std::memory_order_acquire)) return known;
  const std::string base = base_;
  std::lock_guard<std::mutex> lock(CountersLock());
  CallCounter*& counter = Counters()[base];
  if (counter == nullptr) {
    counter = new CallCounter;
    counter->base = base;
    CostOfCall(base, &counter->time);
    counter->usual_error = IsAllocation(base) ? kOutOfMemory : kUnknown;
    for (FailRule& rule : Rules()) {
      if (rule.base != "any" && rule.base != base) continue;
      counter->rules.push_back(&rule);
    }
  }
  counter_.store(counter, std::memory_order_release);
  return counter;
}

int EntryPoint::Enter(bool needs_init) {
  if (shut_down.load(std::memory_order_relaxed)) return kDeinitialized;
  if (needs_init && (!initialized.load(std::memory_order_acquire) || forked.load(std::memory_order_relaxed))) {
    return kNotInitialized;
  }
  Delay();
  CallCounter* counter = Counter();
  counter->calls.fetch_add(1, std::memory_order_relaxed);
  if (needs_init) HostEnters(&counter->time);
  if (counter->rules.empty() && !CountsCallers()) return 0;
  return EnterSlow(counter);
}

// The slow path: failures, or counts by caller.
int EntryPoint::EnterSlow(CallCounter* counter) {
  const bool asks_caller = std::any_of(counter->rules.begin(), counter->rules.end(),
                                       [](const FailRule* rule) { return !rule->object.empty() && !rule->Done(); });
  std::string caller;
  if (asks_caller || CountsCallers()) caller = CallingObject();
  if (CountsCallers()) {
    std::lock_guard<std::mutex> lock(CountersLock());
    ++counter->callers[caller];
  }
  int error = 0;
  for (FailRule* rule : counter->rules) {
    if (rule->Done()) continue;
    if (!rule->object.empty() && (caller.find(rule->object) != std::string::npos) == rule->others) continue;
    const uint64_t call = rule->calls.fetch_add(1, std::memory_order_relaxed) + 1;
    const bool fails =
        rule->every > 0 ? call % rule->every == 0 : (call == rule->first || (rule->onwards && call > rule->first));
    if (fails && error == 0) error = rule->error != 0 ? rule->error : counter->usual_error;
  }
  return error;
}

std::vector<NamedTime> TimesByName() {
  std::vector<NamedTime> times;
  std::lock_guard<std::mutex> lock(CountersLock());
  for (const auto& [base, counter] : Counters()) times.push_back({base, &counter->time});
  return times;
}

// The end begins when static objects older than cuInit are destroyed, as with the real driver.
void SetInitialized() {
  ReadTimeCosts();
  if (!initialized.exchange(true)) atexit([] { shut_down.store(true); });
}
bool IsInitialized() { return initialized.load(std::memory_order_acquire) && !forked.load(std::memory_order_relaxed); }
bool IsShutDown() { return shut_down.load(); }

}  // namespace simgpu
