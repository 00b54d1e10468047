#include "preload/serve/arena_factory.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>

#include "preload/collect/collector_load.h"
#include "preload/collect/collectors.h"
#include "preload/collect/launch_notes.h"
#include "preload/collect/range_watch.h"
#include "preload/process/current_scope.h"
#include "preload/process/debug_options.h"
#include "preload/process/debug_tools.h"
#include "preload/process/driver_access.h"
#include "preload/process/log.h"
#include "preload/process/options.h"
#include "preload/serve/device_limits.h"
#include "preload/serve/driver_blocks.h"
#include "preload/serve/plan_path.h"
#include "preload/serve/plan_store.h"
#include "preload/serve/recorder.h"
#include "preload/streams/graph_memory.h"
#include "preload/streams/stream_order.h"
#include "profiler/trace_writer.h"
#include "runtime/memory/plain_device_memory.h"
#include "runtime/persist/stats_file.h"
#include "runtime/process/mark_listener.h"

namespace hotpack {
namespace {

// The files of the process. Guarded by `mutex`, which is never held across a driver call.
struct Files {
  std::mutex mutex;
  bool stats_tried = false;
  std::atomic<StatsFileHeader*> stats{nullptr};
  bool first_trace = true;       // the next trace is this process's first
  bool owns_plain_name = false;  // this process writes HOTPACK_TRACE itself, not HOTPACK_TRACE.<pid>
  int traces = 0;
};
constinit Files files;

}  // namespace

StatsSlot* NewStatsSlot() {
  std::lock_guard<std::mutex> lock(files.mutex);
  if (!files.stats_tried && GetOptions().stats_dir != nullptr) {
    // Both libraries may be in one process: a file each.
    files.stats.store(CreateStatsFile(GetOptions().stats_dir, kHooksPresent ? "" : ".library"));
    if (files.stats.load() == nullptr) Log("no statistics: cannot write in %s", GetOptions().stats_dir);
  }
  files.stats_tried = true;
  return TakeStatsSlot(files.stats.load());
}

// The first process takes the plain name. Later ones find the file and append their process id.
static bool ClaimPlainName(const char* path) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  close(fd);
  return true;
}

TraceWriter* NewTrace() {
  const Options& options = GetOptions();
  if (options.trace == nullptr) return nullptr;
  std::lock_guard<std::mutex> lock(files.mutex);
  struct stat info;
  // A file beside /dev/null would fill the host's memory.
  if (stat(options.trace, &info) == 0 && !S_ISREG(info.st_mode)) {
    if (files.first_trace) Log("no trace: %s is no regular file", options.trace);
    files.first_trace = false;
    return nullptr;
  }
  if (files.first_trace) files.owns_plain_name = ClaimPlainName(options.trace);
  files.first_trace = false;
  const int ordinal = ++files.traces;
  char pid[16] = "", number[16] = "", path[4200];
  if (!files.owns_plain_name) snprintf(pid, sizeof(pid), ".%d", static_cast<int>(getpid()));
  if (ordinal > 1) snprintf(number, sizeof(number), ".%d", ordinal);
  snprintf(path, sizeof(path), "%s%s%s", options.trace, pid, number);
  TraceStatus status = TraceStatus::kOk;
  std::unique_ptr<TraceWriter> writer = TraceWriter::Create(path, options.trace_limit, &status);
  if (writer == nullptr) {
    const bool too_large = status == TraceStatus::kTooLarge;
    Log("no trace: cannot write %s: %s", path, too_large ? "the size limit is too low" : strerror(errno));
  }
  return writer.release();  // never freed: events arrive until the end of the process, and every one goes into the file
}

namespace {

// In a forked child. The parent's context does not work here (CUDA driver API, fork). Its figures and trace are mapped,
// but they are the parent's. A lost thread may hold a mutex.
void AfterForkInChild() {
  Arenas().AbandonAfterFork();
  Order().ResetAfterFork();
  GraphBlocks().ResetAfterFork();
  BlocksOfDriver().ResetAfterFork();
  ForgetPlanStores();
  ForgetRecordings();
  ForgetCollectorsAfterFork();
  new (&files) Files;
}

DeviceWait SynchronizeForEngine(CUcontext context, uint64_t microseconds) {
  if (microseconds != kNoLimit) return Order().SynchronizeWithin(context, microseconds);
  return Order().Synchronize(context) ? DeviceWait::kDone : DeviceWait::kNotNow;
}

bool IsAnyCapturing() { return Order().AnyCapture(); }

int DeviceOf(const CudaDriver& driver) {
  CUdevice device = -1;
  return driver.CtxGetDevice(&device) == CUDA_SUCCESS ? device : -1;
}

// Returns a device that cannot access `own`'s memory, or whose memory `own` cannot access; -1: none.
CUdevice DeviceWithoutAccess(const CudaDriver& driver, CUdevice own) {
  int count = 0;
  if (driver.DeviceGetCount == nullptr || driver.DeviceCanAccessPeer == nullptr ||
      driver.DeviceGetCount(&count) != CUDA_SUCCESS) {
    return -1;
  }
  for (CUdevice other = 0; other < count; ++other) {
    int there = 1, back = 1;
    if (other == own) continue;
    const bool known = driver.DeviceCanAccessPeer(&there, own, other) == CUDA_SUCCESS &&
                       driver.DeviceCanAccessPeer(&back, other, own) == CUDA_SUCCESS;
    if (known && (there == 0 || back == 0)) return other;
  }
  return -1;
}

// The same for the current context's device, if a program without hooks may copy between them.
CUdevice DeviceThatNeedsPlainMemory(const CudaDriver& driver) {
  constexpr int kKnown = 64, kUnknown = 0, kNone = 1, kFirst = 2;
  static constinit std::atomic<int> answers[kKnown] = {};
  const CUdevice own = kHooksPresent || IsRank() ? -1 : DeviceOf(driver);
  if (own < 0) return -1;
  if (own >= kKnown) return DeviceWithoutAccess(driver, own);
  int answer = answers[own].load(std::memory_order_relaxed);
  if (answer == kUnknown) {
    answer = kFirst + DeviceWithoutAccess(driver, own);
    answers[own].store(answer, std::memory_order_relaxed);
  }
  return answer == kNone ? -1 : answer - kFirst;
}

std::unique_ptr<ContextMemory> NewMemory(const CudaDriver* driver, CUcontext context) {
  const Options& options = GetOptions();
  bool plain = options.arena == ArenaKind::kPlain;
  if (options.arena == ArenaKind::kAutomatic) {
    const CUdevice other = DeviceThatNeedsPlainMemory(*driver);
    static constinit std::atomic<bool> logged{false};
    plain = other >= 0;
    if (plain && !logged.exchange(true)) {
      Log("devices %d and %d cannot access each other's memory: the arena is one cuMemAlloc, so that copies between "
          "them work. HOTPACK_ARENA=vmm keeps virtual memory, for programs that use one device a process",
          DeviceOf(*driver), other);
    }
  }
  if (!plain) return std::make_unique<CudaDeviceMemory>(driver, context, SynchronizeForEngine, options.extents);
  return std::make_unique<PlainDeviceMemory>(driver, context, SynchronizeForEngine, options.plain_arena_bytes);
}

void Say(const char* line) { Log("%s", line); }

// Throws bad_alloc; then only an empty statistics slot is left behind.
ContextArena* Make(const CudaDriver* driver, CUcontext context) {
  std::unique_ptr<ContextArena> arena;
  {
    CurrentScope scope(*driver, context);
    if (!scope) throw std::bad_alloc();  // or the arena would be another device's
    arena = std::make_unique<ContextArena>(context, NewMemory(driver, context));
    arena->memory->SetCapturing(IsAnyCapturing);
    arena->memory->SetLimit(DeviceLimit(DeviceOf(*driver)));
    arena->memory->Initialize();  // kNotSupported: the engine notices and passes everything through
  }
  EngineOptions options;
  if (StatsSlot* slot = NewStatsSlot()) {
    options.stats = &slot->stats;
    options.load = &slot->load;
    options.current = &slot->current;
  }
  options.trace = NewTrace();
  options.note_launches = NotesLaunches();
  options.guard = GetOptions().guard;
  options.stream_edges = GetOptions().stream_edges;
  options.page_wait_us = GetOptions().page_wait_us;
  options.large_alignment = GetOptions().alignment;
  options.envelopes = GetOptions().envelopes;
  if (GetOptions().wait_plan) {
    options.logical_time = true;
    options.plan_time_limit_ns = kLogicalPlanLimitNs;
  }
  options.managed_limit = ManagedLimit(GetOptions(), arena->memory->TotalBytes());
  options.log = Say;
  if (PlanStore* store = NewPlanStore(*driver, *arena->memory)) {
    options.sink = store;
    options.plan = store->Load();
  }
  arena->engine = new Engine(arena->memory.get(), options);
  if (marks_expected.load()) arena->engine->ExpectMarks();
  TellOfRanges(arena->engine);
  return arena.release();
}

// Returns true if a debugger or checker came with the driver, after the options were read. Then no arena is ever made.
bool LeftToTool() {
  static constinit std::atomic<int> answer{-1};
  int known = answer.load();
  if (known >= 0) return known != 0;
  const char* tool = DetectAtDriver(DriverLibrary());
  if (answer.compare_exchange_strong(known, tool != nullptr ? 1 : 0)) {
    if (tool != nullptr) Log("%s is active: allocations are left to the driver", tool);
    return tool != nullptr;
  }
  return known != 0;
}

// At load, so that the child of any fork constructs locks again that other threads hold.
__attribute__((constructor)) void RegisterFork() { pthread_atfork(nullptr, nullptr, AfterForkInChild); }

}  // namespace

bool CopiesNeedPlainMemory(const CudaDriver& driver) {
  return GetOptions().arena != ArenaKind::kVirtual && DeviceThatNeedsPlainMemory(driver) >= 0;
}

ContextArena* MakeArena(CUcontext context) {
  const CudaDriver* driver = Driver();
  if (driver == nullptr) return nullptr;
  WarnOfOptions();
  if (LeftToTool() || IsRecording()) return nullptr;
  Order().NoteContext(context);  // usually known already; not if a library without hooks made the context
  ContextArena* arena = Arenas().FindOrMake(context, [&] { return Make(driver, context); });
  if (arena != nullptr) StartCuptiCollector();
  return arena;
}

// At a normal end the figures are complete. At any other end they are as of the engines' last flush. No driver call.
__attribute__((destructor)) static void FlushAtExit() {
  EndCollectors();
  WarnOfUnmatchedRanges();
  Arenas().ForEach([](ContextArena* arena) { arena->engine->Finish(); });
  EndRecordings();
}

void NoteLeftToDriver() {
  if (StatsFileHeader* stats = files.stats.load(std::memory_order_acquire)) stats->passed_through.fetch_add(1);
}

void NoteFailedRequest(const FailedRequest& failed) {
  std::lock_guard<std::mutex> lock(files.mutex);
  StatsFileHeader* stats = files.stats.load();
  if (stats == nullptr) return;
  const uint64_t before = stats->failed.count;
  stats->failed = failed;
  stats->failed.count = before + 1;
}

}  // namespace hotpack
