#include "preload/collect/collector_host.h"

#include <mutex>
#include <unordered_map>

#include "preload/collect/collector_load.h"
#include "preload/collect/collectors.h"
#include "preload/collect/kernel_table.h"
#include "preload/collect/launch_notes.h"
#include "preload/collect/range_watch.h"
#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"
#include "preload/process/log.h"
#include "preload/process/no_destructor.h"
#include "preload/streams/stream_order.h"
#include "runtime/base/request_timer.h"
#include "runtime/persist/recording.h"

namespace hotpack {

constinit __attribute__((tls_model("initial-exec"))) thread_local NotedLaunch noted_launch;

namespace {

constexpr size_t kMaxAwaited = size_t{1} << 20;  // launches whose times are still missing
constexpr int kMaxEnds = 8;

struct Awaited {
  Engine* engine;
  uint64_t ordinal;
  bool named;
};

struct State {
  std::mutex mutex;
  std::unordered_map<uint64_t, Awaited> awaited;  // by correlation id
  void (*ends[kMaxEnds])() = {};
  int end_count = 0;
  bool ended = false;
};
constinit NoDestructor<State> the_state;

Engine* FirstRecording() {
  Engine* first = nullptr;
  Arenas().ForEach([&first](ContextArena* arena) {
    if (first == nullptr && arena->engine->IsRecording()) first = arena->engine;
  });
  return first;
}

// Returns the engine for notes that name no block; null: nothing is recorded.
Engine* Home() {
  Engine* first = FirstRecording();
  if (first == nullptr || Arenas().Size() == 1) return first;
  const CudaDriver* driver = Driver();
  ContextArena* arena = driver != nullptr ? Arenas().Find(CurrentContext(*driver)) : nullptr;
  return arena != nullptr && arena->engine->IsRecording() ? arena->engine : first;
}

int IsRecording() { return FirstRecording() != nullptr ? 1 : 0; }
int AreLaunchesNoted() { return NotesLaunches() ? 1 : 0; }
uint64_t NowNs() { return static_cast<uint64_t>(RequestTimer::Now()); }
uint64_t Position() {
  Engine* engine = FirstRecording();
  return engine != nullptr ? engine->RecordedEvents() : 0;
}
int64_t Iterations() {
  Engine* engine = FirstRecording();
  if (engine == nullptr) return -1;
  const uint64_t iterations = engine->Stats().iterations;
  return iterations > 0 ? static_cast<int64_t>(iterations) : -1;
}

int LaunchSeen(uint64_t correlation, const char* name, void* stream, int per_thread) noexcept try {
  if (hook_depth > 0 || FirstRecording() == nullptr) return 0;  // inside a hook it is hotpack's own work
  auto handle = static_cast<CUstream>(stream);
  if (handle == nullptr && per_thread != 0) handle = CU_STREAM_PER_THREAD;
  const bool named = name != nullptr && name[0] != '\0';
  NotedLaunch noted = noted_launch;
  noted_launch.engine = nullptr;
  bool has_name = true;  // the launch collector's note has one, or none is available
  if (noted.engine == nullptr) {
    if (Order().IsCapturing(handle)) return 0;
    LaunchNote note;
    if (named) note.name = name;
    note.stream = StreamOrdinal(handle);
    noted.engine = Home();
    noted.ordinal = noted.engine != nullptr ? noted.engine->NoteLaunch(note, false) : Engine::kNoLaunch;
    if (noted.ordinal == Engine::kNoLaunch) return 0;
    has_name = named;
  }
  State& state = the_state.Get();
  std::lock_guard<std::mutex> lock(state.mutex);
  if (state.awaited.size() >= kMaxAwaited) return 0;
  state.awaited[correlation] = {noted.engine, noted.ordinal, has_name};
  return 1;
} catch (...) {  // no host memory: the launch has no times
  return 0;
}

int WorkDone(uint64_t correlation, const char* name, uint64_t start_ns, uint64_t end_ns) noexcept try {
  State* state = the_state.Made();
  if (state == nullptr) return 0;
  Awaited launch{};
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    const auto found = state->awaited.find(correlation);
    if (found == state->awaited.end()) return 0;
    launch = found->second;
    state->awaited.erase(found);
  }
  const bool wanted = !launch.named && name != nullptr;
  launch.engine->NoteWork(launch.ordinal, wanted ? name : "", start_ns, end_ns);
  return 1;
} catch (...) {
  return 1;
}

void MemorySeen(const hotpack_note_memory* memory) noexcept try {
  Engine* engine = memory != nullptr ? Home() : nullptr;
  if (engine == nullptr) return;
  DriverMemory note;
  note.time_ns = memory->time_ns;
  note.address = memory->address;
  note.bytes = memory->bytes;
  note.kind = memory->kind;
  note.released = memory->released != 0;
  engine->NoteMemory(note, memory->name != nullptr ? memory->name : "");
} catch (...) {
}

int RangeSeen(hotpack_note_range kind, uint64_t id, const char* name) noexcept try {
  return WatchRange(static_cast<RangeKind>(kind), id, name);
} catch (...) {
  return -1;
}

void Say(const char* line) { Log("%s", line); }

int OnEnd(void (*function)()) noexcept try {
  State& state = the_state.Get();
  std::lock_guard<std::mutex> lock(state.mutex);
  if (state.end_count == kMaxEnds || state.ended) return -1;
  state.ends[state.end_count++] = function;
  return 0;
} catch (...) {
  return -1;
}

constexpr hotpack_collector_host kHost = {HOTPACK_COLLECTOR_HOST_VERSION,
                                          sizeof(hotpack_collector_host),
                                          IsRecording,
                                          AreLaunchesNoted,
                                          NowNs,
                                          Position,
                                          Iterations,
                                          LaunchSeen,
                                          WorkDone,
                                          MemorySeen,
                                          RangeSeen,
                                          hotpack_step,
                                          hotpack_interrupt,
                                          hotpack_resume,
                                          Say,
                                          OnEnd,
                                          OnClose,
                                          PlannedIterations,
                                          CuptiIterations,
                                          EnterHookForEver};

}  // namespace

void EndCollectors() {
  State* state = the_state.Made();
  if (state == nullptr) return;
  void (*ends[kMaxEnds])() = {};
  int count = 0;
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    if (state->ended) return;
    state->ended = true;
    count = state->end_count;
    for (int i = 0; i < count; ++i) ends[i] = state->ends[i];
  }
  for (int i = 0; i < count; ++i) ends[i]();
}

void ForgetCollectorsAfterFork() {
  the_state.RenewAfterFork();
  noted_launch = {};
  ForgetKernelsAfterFork();
  ForgetRangesAfterFork();
}

}  // namespace hotpack

extern "C" const hotpack_collector_host* hotpack_get_collector_host(uint32_t version) {
  return version == HOTPACK_COLLECTOR_HOST_VERSION ? &hotpack::kHost : nullptr;
}
