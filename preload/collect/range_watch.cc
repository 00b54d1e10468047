#include "preload/collect/range_watch.h"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "preload/process/log.h"
#include "preload/process/no_destructor.h"
#include "preload/process/option_table.h"
#include "runtime/base/request_timer.h"
#include "runtime/include/hotpack.h"
#include "runtime/persist/recording.h"
#include "runtime/process/arena_table.h"
#include "runtime/process/mark_listener.h"

namespace hotpack {
namespace {

constexpr size_t kMaxOpen = 1 << 16;     // ranges kept per thread; further pushes are only counted
constexpr size_t kMaxPending = 1 << 12;  // edges kept from before the first recording; also the ranges known to be open
constexpr size_t kMaxInterrupting = 1 << 16;

struct Open {
  uint64_t domain;
  uint64_t noted_as;  // id of the start/end range that it is noted as; 0: noted as a push
  bool iteration;
  bool interrupts;
};

// The ranges of one thread.
struct ThreadRanges {
  std::vector<Open> open;
  uint64_t beyond = 0;
};

struct PendingEdge {
  RangeEdge edge;  // time_ns: of the steady clock
  std::string name;
};

// An engine gets edges and interruptions from TellOfRanges on, before other threads can find its arena. TellOfRanges
// runs under the lock, so the engine misses none and gets none twice.
struct State {
  std::mutex mutex;                           // guards the members below; locked before an engine's
  std::unordered_set<uint64_t> interrupting;  // ids of interrupting start/end ranges
  std::vector<Engine*> engines;
  std::vector<PendingEdge> pending;  // from before the first recording; emptied once there were too many
  bool too_many = false;
  std::vector<PendingEdge> begun;  // of ranges that have not ended: a later recording begins with them
  bool any_recording = false;
  int interrupts_open = 0;

  std::atomic<bool> any_engine{false};
  std::atomic<int> iterations_open{0};
  std::atomic<uint64_t> seen{0};
  std::atomic<bool> iteration_matched{false}, interrupt_matched{false};
  std::atomic<uint64_t> next_id{uint64_t{1} << 63};  // of ranges of named domains, which are noted as start and end
};
constinit NoDestructor<State> the_state;
State& TheState() { return the_state.Get(); }

constinit std::atomic<int8_t> wanted{-1};  // -1: not read yet
bool Wanted() {
  const int8_t known = wanted.load(std::memory_order_relaxed);
  if (known >= 0) [[likely]]
    return known != 0;
  const Options& options = GetOptions();
  const bool any = options.enabled && (options.trace != nullptr || options.iteration_range != nullptr ||
                                       options.interrupt_range != nullptr);
  wanted.store(any ? 1 : 0, std::memory_order_relaxed);
  return any;
}

// With the lock held. A range ends where it began: on its thread, or by its id.
void KeepBegun(State* state, const PendingEdge& edge) {
  const RangeEdge& now = edge.edge;
  if (now.kind == RangeKind::kPush || now.kind == RangeKind::kStart) {
    if (state->begun.size() < kMaxPending) state->begun.push_back(edge);
    return;
  }
  if (now.kind == RangeKind::kMark) return;
  for (size_t i = state->begun.size(); i-- > 0;) {
    const RangeEdge& begin = state->begun[i].edge;
    const bool same = now.kind == RangeKind::kPop ? begin.kind == RangeKind::kPush && begin.thread == now.thread
                                                  : begin.kind == RangeKind::kStart && begin.id == now.id;
    if (!same) continue;
    state->begun.erase(state->begun.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

// Writes to all recordings; keeps edges from before the first. Out of host memory: drops the edge.
void Note(RangeKind kind, uint64_t id, const char* name) noexcept try {
  if (GetOptions().trace == nullptr) return;
  State& state = TheState();
  const PendingEdge edge = {
      {.time_ns = static_cast<uint64_t>(RequestTimer::Now()), .id = id, .thread = ThreadOrdinal(), .kind = kind}, name};
  std::lock_guard<std::mutex> lock(state.mutex);
  for (Engine* engine : state.engines) engine->NoteRange(kind, id, name, edge.edge.time_ns, edge.edge.thread);
  KeepBegun(&state, edge);
  if (state.any_recording || state.too_many) return;
  state.pending.push_back(edge);
  if (state.pending.size() <= kMaxPending) return;
  state.too_many = true;  // the first ones without the later ones would be ranges that never end
  std::vector<PendingEdge>().swap(state.pending);
} catch (...) {
}

// As hotpack_interrupt and hotpack_resume, for the registered engines.
void TellMark(EventKind kind) {
  if (const auto listener = mark_listener.load(std::memory_order_acquire)) listener(kind);
}
void Interrupt() {
  State& state = TheState();
  {
    std::lock_guard<std::mutex> lock(state.mutex);
    ++state.interrupts_open;
    for (Engine* engine : state.engines) engine->Interrupt();
  }
  TellMark(EventKind::kInterrupt);
}
void Resume() {
  State& state = TheState();
  {
    std::lock_guard<std::mutex> lock(state.mutex);
    --state.interrupts_open;
    for (Engine* engine : state.engines) engine->Resume();
  }
  TellMark(EventKind::kResume);
}

void EndRange(const Open& range) {
  if (range.iteration) TheState().iterations_open.fetch_sub(1);
  if (range.interrupts) Resume();
  Note(range.noted_as != 0 ? RangeKind::kEnd : RangeKind::kPop, range.noted_as, "");
}

constinit pthread_once_t key_once = PTHREAD_ONCE_INIT;
constinit pthread_key_t key = 0;
constinit bool key_made = false;

void ThreadEnds(void* pointer) {
  auto* ranges = static_cast<ThreadRanges*>(pointer);
  try {
    for (; !ranges->open.empty(); ranges->open.pop_back()) EndRange(ranges->open.back());
  } catch (...) {
  }
  delete ranges;
}

ThreadRanges* OfThisThread() {
  pthread_once(&key_once, [] { key_made = pthread_key_create(&key, ThreadEnds) == 0; });
  if (!key_made) return nullptr;
  auto* ranges = static_cast<ThreadRanges*>(pthread_getspecific(key));
  if (ranges != nullptr) return ranges;
  ranges = new ThreadRanges;
  if (pthread_setspecific(key, ranges) == 0) return ranges;
  delete ranges;
  return nullptr;
}

bool BeginsIteration(const char* name) {
  if (!MatchesPattern(GetOptions().iteration_range, name)) return false;
  TheState().iteration_matched.store(true, std::memory_order_relaxed);
  return true;
}

bool Interrupts(const char* name) {
  if (!MatchesPattern(GetOptions().interrupt_range, name)) return false;
  TheState().interrupt_matched.store(true, std::memory_order_relaxed);
  return true;
}

// Returns the level of the domain's innermost open range, from 0; -1 if there is none. *place: its index.
int LevelOf(const ThreadRanges& ranges, uint64_t domain, size_t* place) {
  int level = -1;
  for (size_t i = 0; i < ranges.open.size(); ++i) {
    if (ranges.open[i].domain != domain) continue;
    ++level;
    *place = i;
  }
  return level;
}

int Push(uint64_t domain, const char* name) {
  ThreadRanges* ranges = OfThisThread();
  if (ranges == nullptr) return -1;
  if (ranges->open.size() >= kMaxOpen) {
    ++ranges->beyond;
    return static_cast<int>(kMaxOpen);
  }
  State& state = TheState();
  ranges->open.push_back({domain, domain != 0 ? state.next_id.fetch_add(1) : 0, false, false});
  Open& range = ranges->open.back();
  Note(range.noted_as != 0 ? RangeKind::kStart : RangeKind::kPush, range.noted_as, name);
  if (BeginsIteration(name)) {
    range.iteration = true;
    if (state.iterations_open.fetch_add(1) == 0) hotpack_step();
  }
  range.interrupts = Interrupts(name);
  if (range.interrupts) Interrupt();
  size_t place = 0;
  return domain == 0 && ranges->open.size() == 1 ? 0 : LevelOf(*ranges, domain, &place);
}

int Pop(uint64_t domain) {
  ThreadRanges* ranges = OfThisThread();
  if (ranges == nullptr) return -1;
  if (ranges->beyond > 0) {
    --ranges->beyond;
    return static_cast<int>(kMaxOpen);
  }
  size_t place = 0;
  const int level = LevelOf(*ranges, domain, &place);
  if (level < 0) return -1;
  const Open range = ranges->open[place];
  ranges->open.erase(ranges->open.begin() + static_cast<std::ptrdiff_t>(place));
  EndRange(range);
  return level;
}

void Start(uint64_t id, const char* name) {
  State& state = TheState();
  Note(RangeKind::kStart, id, name);
  if (BeginsIteration(name) && state.iterations_open.load() == 0) hotpack_step();
  if (!Interrupts(name)) return;
  {
    std::lock_guard<std::mutex> lock(state.mutex);
    if (state.interrupting.size() >= kMaxInterrupting || !state.interrupting.insert(id).second) return;
  }
  Interrupt();
}

void End(uint64_t id) {
  State& state = TheState();
  bool interrupted = false;
  if (GetOptions().interrupt_range != nullptr) {
    std::lock_guard<std::mutex> lock(state.mutex);
    interrupted = state.interrupting.erase(id) != 0;
  }
  if (interrupted) Resume();
  Note(RangeKind::kEnd, id, "");
}

}  // namespace

int WatchRange(RangeKind kind, uint64_t id, const char* name) {
  if (!Wanted()) return 0;
  if (name == nullptr) name = "";
  TheState().seen.fetch_add(1, std::memory_order_relaxed);
  switch (kind) {
    case RangeKind::kPush:
      return Push(id, name);
    case RangeKind::kPop:
      return Pop(id);
    case RangeKind::kStart:
      Start(id, name);
      return 0;
    case RangeKind::kEnd:
      End(id);
      return 0;
    case RangeKind::kMark:
      Note(kind, 0, name);
      if (BeginsIteration(name) && TheState().iterations_open.load() == 0) hotpack_step();
      return 0;
  }
  return -1;
}

void TellOfRanges(Engine* engine) noexcept try {
  if (!Wanted()) return;
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.engines.push_back(engine);
  state.any_engine.store(true);
  if (engine->IsRecording()) {
    for (const PendingEdge& each : state.any_recording || state.too_many ? state.begun : state.pending) {
      engine->NoteRange(each.edge.kind, each.edge.id, each.name, each.edge.time_ns, each.edge.thread);
    }
    state.any_recording = true;
    std::vector<PendingEdge>().swap(state.pending);
  }
  for (int i = state.interrupts_open; i > 0; --i) engine->Interrupt();
} catch (...) {
}

void ForgetRangesOf(const Engine* engine) {
  State* state = the_state.Made();
  if (state == nullptr) return;
  std::lock_guard<std::mutex> lock(state->mutex);
  std::erase(state->engines, engine);
}

void WarnOfUnmatchedRanges() {
  const State* state = the_state.Made();
  if (state == nullptr || !state->any_engine.load()) return;
  const Options& options = GetOptions();
  const auto seen = static_cast<unsigned long long>(state->seen.load());
  if (options.iteration_range != nullptr && !state->iteration_matched.load()) {
    Log("none of the program's ranges and marks matched HOTPACK_ITERATION_RANGE=%.100s (%llu calls seen)",
        options.iteration_range, seen);
  }
  if (options.interrupt_range != nullptr && !state->interrupt_matched.load()) {
    Log("none of the program's ranges matched HOTPACK_INTERRUPT_RANGE=%.100s (%llu calls seen)",
        options.interrupt_range, seen);
  }
}

void ForgetRangesAfterFork() {
  the_state.RenewAfterFork();
  if (key_made) pthread_setspecific(key, nullptr);
}

}  // namespace hotpack
