#include "runtime/arena_table.h"

namespace hotpack {

ArenaTable::Slot* ArenaTable::Claim(CUcontext context, bool* claimed) {
  while (busy_.exchange(true, std::memory_order_acquire)) sched_yield();
  Slot* found = nullptr;
  *claimed = false;
  const size_t count = count_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count && found == nullptr; ++i) {
    if (slots_[i].context.load(std::memory_order_relaxed) == context) found = &slots_[i];
  }
  for (size_t i = 0; i < kCapacity && found == nullptr; ++i) {
    if (slots_[i].context.load(std::memory_order_relaxed) != nullptr) continue;
    found = &slots_[i];
    found->context.store(context, std::memory_order_release);
    if (i >= count) count_.store(i + 1, std::memory_order_release);
    *claimed = true;
  }
  busy_.store(false, std::memory_order_release);
  return found;
}

ContextArena* ArenaTable::Remove(CUcontext context) {
  if (context == nullptr) return nullptr;
  for (Slot& slot : slots_) {
    if (slot.context.load(std::memory_order_acquire) != context) continue;
    ContextArena* arena = slot.arena.exchange(nullptr);
    slot.context.store(nullptr, std::memory_order_release);
    return arena;
  }
  return nullptr;
}

size_t ArenaTable::Size() const {
  size_t size = 0;
  ForEach([&size](ContextArena*) { ++size; });
  return size;
}

void ArenaTable::AbandonAfterFork() {
  for (Slot& slot : slots_) {
    ContextArena* arena = slot.arena.exchange(nullptr);
    if (arena != nullptr) arena->engine->AbandonAfterFork();
    slot.context.store(nullptr, std::memory_order_relaxed);
  }
  count_.store(0);
  busy_.store(false);
}

ArenaTable& Arenas() {
  static constinit ArenaTable table;  // no destructor to run at exit
  return table;
}

}  // namespace hotpack
