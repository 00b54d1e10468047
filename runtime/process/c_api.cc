// The calls of runtime/include/hotpack.h that concern all arenas. hotpack_malloc and hotpack_free are in
// preload/capi/allocate.cc, because they follow the same rules as the driver hooks.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/include/hotpack.h"
#include "runtime/persist/stats_file.h"
#include "runtime/process/arena_table.h"
#include "runtime/process/mark_listener.h"

namespace hotpack {

constinit std::atomic<void (*)(EventKind)> mark_listener{nullptr};
constinit std::atomic<bool> marks_expected{false};

namespace {
void Tell(EventKind kind) {
  if (const auto listener = mark_listener.load(std::memory_order_acquire)) listener(kind);
}
}  // namespace

}  // namespace hotpack

extern "C" {

int hotpack_version(void) { return HOTPACK_VERSION; }

void hotpack_step(void) {
  hotpack::Arenas().ForEach([](hotpack::ContextArena* arena) { arena->engine->Mark(); });
  hotpack::Tell(hotpack::EventKind::kMark);
}

void hotpack_expect_steps(void) {
  if (hotpack::marks_expected.exchange(true)) return;
  hotpack::Arenas().ForEach([](hotpack::ContextArena* arena) { arena->engine->ExpectMarks(); });
  hotpack::Tell(hotpack::EventKind::kExpect);
}

void hotpack_interrupt(void) {
  hotpack::Arenas().ForEach([](hotpack::ContextArena* arena) { arena->engine->Interrupt(); });
  hotpack::Tell(hotpack::EventKind::kInterrupt);
}

void hotpack_resume(void) {
  hotpack::Arenas().ForEach([](hotpack::ContextArena* arena) { arena->engine->Resume(); });
  hotpack::Tell(hotpack::EventKind::kResume);
}

int hotpack_wait_plan(int timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(std::max(timeout_ms, 0));
  bool idle = true;
  hotpack::Arenas().ForEach([&](hotpack::ContextArena* arena) {
    int left = timeout_ms;
    if (timeout_ms > 0) {
      const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      left = static_cast<int>(std::max<int64_t>(rest, 0));
    }
    idle = arena->engine->WaitPlan(left) && idle;
  });
  return idle ? 1 : 0;
}

uint64_t hotpack_check(void) {
  uint64_t bad = 0;
  hotpack::Arenas().ForEach([&bad](hotpack::ContextArena* arena) { bad += arena->engine->CheckGuards(); });
  return bad;
}

int hotpack_get_stats(hotpack_stats* stats, size_t size) {
  if (stats == nullptr) return -1;
  hotpack_stats each[hotpack::ArenaTable::kCapacity];
  size_t count = 0;
  hotpack::Arenas().ForEach([&](hotpack::ContextArena* arena) {
    if (count < hotpack::ArenaTable::kCapacity) each[count++] = arena->engine->Stats();
  });
  if (count == 0) return -1;
  const hotpack_stats sum = hotpack::Combine(each, count);
  std::memset(stats, 0, size);  // a caller built with a later header gets zeros in fields unknown to this library
  std::memcpy(stats, &sum, std::min(size, sizeof(sum)));
  return 0;
}

}  // extern "C"
