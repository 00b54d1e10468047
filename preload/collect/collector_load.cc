#include "preload/collect/collector_load.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "preload/process/elf_symbols.h"
#include "preload/process/hook_scope.h"
#include "preload/process/log.h"
#include "preload/process/options.h"
#include "runtime/process/arena_table.h"

namespace hotpack {
namespace {

constexpr char kNot[] = "kernel times are not recorded: ";
constexpr char kFile[] = "libhotpack_cupti.so.0";
constexpr int kListeners = 8;

constinit std::atomic<void (*)()> listeners[kListeners] = {};

// Returns the path of `kFile` in this library's own directory. Returns false if that is unknown.
bool BesideUs(char* path, size_t size) {
  Dl_info us;
  if (dladdr(reinterpret_cast<void*>(&StartCuptiCollector), &us) == 0 || us.dli_fname == nullptr) return false;
  const char* slash = strrchr(us.dli_fname, '/');
  const int directory = slash != nullptr ? static_cast<int>(slash - us.dli_fname + 1) : 0;
  const int length = snprintf(path, size, "%.*s%s", directory, us.dli_fname, kFile);
  return length > 0 && static_cast<size_t>(length) < size;
}

}  // namespace

void StartCuptiCollector() {
  static constinit std::atomic<bool> tried{false};
  const Options& options = GetOptions();
  if (!options.cupti || tried.exchange(true)) return;
  if (options.trace == nullptr) {
    Log("%sthere is no trace (HOTPACK_TRACE, hotpack run --trace)", kNot);
    return;
  }
  const hotpack_collector_host* host = hotpack_get_collector_host(HOTPACK_COLLECTOR_HOST_VERSION);
  if (host == nullptr || host->recording() == 0) return;  // the trace cannot be written, which was logged
  char path[4200];
  void* library = BesideUs(path, sizeof(path)) ? RealDlopen()(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library == nullptr) {
    Log("%s%s cannot be loaded (it is built where CUPTI's headers are)", kNot, kFile);
    return;
  }
  const auto start = reinterpret_cast<hotpack_collector_start>(RealDlsym()(library, HOTPACK_COLLECTOR_START));
  if (start != nullptr) start(host);
}

void TellClosing() {
  for (std::atomic<void (*)()>& listener : listeners) {
    if (void (*function)() = listener.load(std::memory_order_acquire)) function();
  }
}

int OnClose(void (*function)()) {
  for (std::atomic<void (*)()>& listener : listeners) {
    void (*none)() = nullptr;
    if (listener.compare_exchange_strong(none, function)) return 0;
  }
  return -1;
}

int64_t PlannedIterations() {
  int64_t iterations = -1;
  Arenas().ForEach([&](ContextArena* arena) {
    if (iterations >= 0) return;
    const hotpack_stats stats = arena->engine->Stats();
    if (stats.steady_iteration >= 0) iterations = static_cast<int64_t>(stats.iterations) - stats.steady_iteration;
  });
  return iterations;
}

uint64_t CuptiIterations() { return GetOptions().cupti_iterations; }

void EnterHookForEver() { ++hook_depth; }

}  // namespace hotpack
