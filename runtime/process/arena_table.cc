#include "runtime/process/arena_table.h"

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
    found->context.store(context);  // before IsEnding is called
    if (i >= count) count_.store(i + 1, std::memory_order_release);
    *claimed = true;
  }
  busy_.store(false, std::memory_order_release);
  return found;
}

ContextArena* ArenaTable::Remove(CUcontext context) {
  if (context == nullptr) return nullptr;
  for (Slot& slot : slots_) {
    if (slot.context.load() != context) continue;
    WaitUntilMade(slot, context);
    if (slot.context.load() != context) continue;  // none was made
    ContextArena* arena = slot.arena.exchange(nullptr);
    slot.context.store(nullptr, std::memory_order_release);
    return arena;
  }
  return nullptr;
}

void ArenaTable::BeginEnd(CUcontext context) {
  while (true) {
    for (std::atomic<CUcontext>& ending : ending_) {
      CUcontext free = nullptr;
      if (!ending.compare_exchange_strong(free, context)) continue;
      endings_.fetch_add(1);
      return;
    }
    sched_yield();
  }
}

void ArenaTable::FinishEnd(CUcontext context) {
  for (std::atomic<CUcontext>& ending : ending_) {
    CUcontext expected = context;
    if (!ending.compare_exchange_strong(expected, nullptr)) continue;
    endings_.fetch_sub(1);
    return;
  }
}

bool ArenaTable::IsEnding(CUcontext context) const {
  if (endings_.load() == 0) return false;
  for (const std::atomic<CUcontext>& ending : ending_) {
    if (ending.load() == context) return true;
  }
  return false;
}

size_t ArenaTable::Size() const {
  size_t size = 0;
  ForEach([&size](ContextArena*) { ++size; });
  return size;
}

void ArenaTable::AbandonAfterFork() {
  for (Slot& slot : slots_) {
    ContextArena* arena = slot.arena.exchange(nullptr);
    if (arena != nullptr) {
      Reservation* const inherited = inherited_count_ < kCapacity ? &inherited_[inherited_count_] : nullptr;
      if (inherited != nullptr && arena->engine->Reservation(&inherited->begin, &inherited->bytes)) ++inherited_count_;
      arena->engine->AbandonAfterFork();
    }
    slot.context.store(nullptr, std::memory_order_relaxed);
  }
  for (std::atomic<CUcontext>& ending : ending_) ending.store(nullptr);
  endings_.store(0);
  count_.store(0);
  busy_.store(false);
}

bool ArenaTable::Inherited(DeviceAddress address) const {
  for (size_t i = 0; i < inherited_count_; ++i) {
    if (address - inherited_[i].begin < inherited_[i].bytes) return true;
  }
  return false;
}

constinit ArenaTable process_arenas;

}  // namespace hotpack
