#include "preload/serve/out_of_memory.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "preload/process/log.h"
#include "preload/serve/arena_factory.h"
#include "preload/serve/device_limits.h"
#include "preload/serve/driver_blocks.h"

namespace hotpack {
namespace {

unsigned long long MiB(uint64_t bytes) { return static_cast<unsigned long long>(bytes >> 20); }

// A size in words: MiB, or KiB, rounded up, below one MiB.
struct Amount {
  // `round_up`: also MiB.
  explicit Amount(uint64_t bytes, bool round_up = false) {
    if (bytes < (1u << 20)) {
      snprintf(text, sizeof(text), "%llu KiB", static_cast<unsigned long long>((bytes + 1023) >> 10));
    } else {
      snprintf(text, sizeof(text), "%llu MiB", MiB(bytes + (round_up ? (1u << 20) - 1 : 0)));
    }
  }
  char text[32];
};

// Resolves kCurrentDevice. Returns a negative number if there is no device.
CUdevice Resolve(CUdevice device) {
  const CudaDriver* driver = Driver();
  if (device != kCurrentDevice || driver == nullptr) return device;
  return driver->CtxGetDevice(&device) == CUDA_SUCCESS ? device : kCurrentDevice;
}

template <typename Function>
void ForEachOn(CUdevice device, Function function) {
  Arenas().ForEach([&](ContextArena* arena) {
    if (arena->memory->device() == device) function(arena);
  });
}

uint64_t TrimArenas(CUdevice device, const ContextArena* except, uint64_t wanted) {
  uint64_t given = 0;
  ForEachOn(device, [&](ContextArena* arena) {
    if (arena != except && given < wanted) given += arena->engine->Trim(wanted - given);
  });
  return given;
}

bool FreeMemory(size_t* free, size_t* total) {
  const CudaDriver* driver = Driver();
  return driver != nullptr && driver->MemGetInfo != nullptr && driver->MemGetInfo(free, total) == CUDA_SUCCESS;
}

bool TrimDriverBlocks() {
  const CudaDriver* driver = Driver();
  return driver != nullptr && BlocksOfDriver().IdleBytes() > 0 && BlocksOfDriver().Trim(*driver);
}

// Returns true if the device cannot hold it even after a full trim. Then nothing is trimmed.
bool CanNeverFit(CUdevice device, uint64_t bytes) {
  if (bytes == kUnknownBytes) return false;
  size_t free = 0, total = 0;
  if (Resolve(kCurrentDevice) != device || !FreeMemory(&free, &total)) return false;
  uint64_t idle = BlocksOfDriver().IdleBytes();
  ForEachOn(device, [&](ContextArena* arena) {
    const EngineUsage usage = arena->engine->Usage();
    if (usage.may_shrink) idle += usage.returnable;
  });
  return bytes > free + idle;
}

struct Holders {
  EngineUsage current;  // the current context's arena
  uint64_t others = 0;  // held by the device's other arenas
  uint64_t idle = 0;    // of all of them: what may be trimmed
  uint64_t passed_through = 0;
};

Holders Count(CUdevice device, CUcontext context) {
  Holders holders;
  ForEachOn(device, [&](ContextArena* arena) {
    const EngineUsage usage = arena->engine->Usage();
    if (usage.may_shrink) holders.idle += usage.returnable;
    holders.passed_through += usage.passed_through;
    if (arena->context == context) {
      holders.current = usage;
    } else {
      holders.others += usage.held;
    }
  });
  return holders;
}

void DescribePlan(const EngineUsage& usage, char* text, size_t size) {
  if (usage.plan == 0) {
    snprintf(text, size, "has no plan");
    return;
  }
  const char* state = !usage.followed ? "which is set aside"
                      : usage.lost    ? "and does not follow it now"
                                      : "and follows it";
  snprintf(text, size, "has left its plan of %llu MiB %llu time%s, %s", MiB(usage.plan),
           static_cast<unsigned long long>(usage.divergences), usage.divergences == 1 ? "" : "s", state);
}

// Returns true in the one thread that may write a line now. *left_out: lines suppressed since the last.
bool MayReport(uint64_t* left_out) {
  constexpr int64_t kApartSeconds = 10;
  static constinit std::atomic<int64_t> next{0};
  static constinit std::atomic<uint64_t> silent{0};
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  int64_t due = next.load();
  if (now.tv_sec < due || !next.compare_exchange_strong(due, now.tv_sec + kApartSeconds)) {
    silent.fetch_add(1);
    return false;
  }
  *left_out = silent.exchange(0);
  return true;
}

}  // namespace

bool TrimOtherArenas(const ContextArena* arena, uint64_t bytes) noexcept try {
  const CUdevice device = arena->memory->device();
  if (CanNeverFit(device, bytes)) return false;
  const bool blocks = TrimDriverBlocks();
  return TrimArenas(device, arena, UINT64_MAX) > 0 || blocks;
} catch (...) {
  return false;
}

bool TrimDevice(CUdevice device, uint64_t bytes, int attempt) noexcept try {
  constexpr uint64_t kSlack = 32u << 20;  // the driver rounds up
  device = Resolve(device);
  if (device < 0 || CanNeverFit(device, bytes)) return false;
  if (attempt == 0 && TrimDriverBlocks()) return true;
  if (attempt == 0) return bytes != kUnknownBytes && TrimArenas(device, nullptr, bytes + kSlack) > 0;
  return TrimArenas(device, nullptr, UINT64_MAX) > 0;
} catch (...) {
  return false;
}

size_t DescribeOutOfMemory(CUdevice device, const char* call, uint64_t bytes, char* text, size_t size) noexcept try {
  size_t free = 0, total = 0;
  const CudaDriver* driver = Driver();
  device = Resolve(device);
  text[0] = '\0';
  if (device < 0 || driver == nullptr) return 0;
  FreeMemory(&free, &total);
  const Holders holders = Count(device, CurrentContext(*driver));
  const EngineUsage& own = holders.current;
  const uint64_t room = free + holders.idle, ours = own.held + holders.others;
  const uint64_t limit = DeviceLimit(device);
  char asked[160] = "", plan[128] = "";
  const Amount request(bytes), missing(bytes > room ? bytes - room : 0, true);
  if (bytes == kUnknownBytes) {
    snprintf(asked, sizeof(asked), "%s found too little memory", call);
  } else if (limit != UINT64_MAX && own.held + bytes > limit) {
    snprintf(asked, sizeof(asked), "%s of %s is beyond the limit of %llu MiB set for the process", call, request.text,
             MiB(limit));
  } else if (bytes > room) {
    snprintf(asked, sizeof(asked), "%s of %s is %s too much", call, request.text, missing.text);
  } else {
    snprintf(asked, sizeof(asked), "%s of %s finds no place, although as much is free", call, request.text);
  }
  DescribePlan(own, plan, sizeof(plan));
  const int length = snprintf(
      text, size,
      "out of memory on device %d: %s. Of %llu MiB, %llu are free, this context's arena has %llu (%llu live, %llu of "
      "these outside the plan; %llu idle), other arenas of the process %llu, the rest %llu (driver, other processes, "
      "%llu request%s passed through). The job %s",
      device, asked, MiB(total), MiB(free), MiB(own.held), MiB(own.live), MiB(own.outside_plan), MiB(own.Idle()),
      MiB(holders.others), MiB(total - std::min<uint64_t>(total, free + ours)),
      static_cast<unsigned long long>(holders.passed_through), holders.passed_through == 1 ? "" : "s", plan);
  return length < 0 ? 0 : std::min<size_t>(static_cast<size_t>(length), size - 1);
} catch (...) {
  return 0;
}

void NoteOutOfMemory(CUdevice device, uint64_t bytes) noexcept try {
  const CudaDriver* driver = Driver();
  device = Resolve(device);
  if (device < 0 || driver == nullptr) return;
  FailedRequest failed = {};
  size_t free = 0, total = 0;
  FreeMemory(&free, &total);
  failed.bytes = bytes;
  ForEachOn(device, [&](ContextArena* arena) {
    const EngineUsage usage = arena->engine->Usage();
    failed.held += usage.held;
    failed.live += usage.live;
  });
  const CUcontext context = CurrentContext(*driver);
  Arenas().ForEach([&](ContextArena* arena) {
    const hotpack_stats stats = arena->engine->Stats();
    failed.requests += stats.requests;
    if (arena->context == context) failed.iterations = stats.iterations;
  });
  const uint64_t limit = DeviceLimit(device);
  const bool limited = limit < total;
  failed.limited = limited ? 1 : 0;
  failed.total = limited ? limit : total;
  failed.free = limited ? std::min<uint64_t>(free, limit - std::min(limit, failed.held)) : free;
  NoteFailedRequest(failed);
} catch (...) {
  // Out of host memory: the line of `hotpack run` lacks it.
}

void ReportOutOfMemory(CUdevice device, const char* call, uint64_t bytes) noexcept {
  uint64_t left_out = 0;
  char text[768] = "", more[64] = "";
  if (Resolve(device) < 0 || !MayReport(&left_out)) return;
  if (DescribeOutOfMemory(device, call, bytes, text, sizeof(text)) == 0) return;
  if (left_out > 0)
    snprintf(more, sizeof(more), "; %llu more since the last line", static_cast<unsigned long long>(left_out));
  Log("%s%s", text, more);
}

}  // namespace hotpack
