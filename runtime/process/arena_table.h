// The arenas of the process, one per context, found by context or by address without a lock.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "runtime/engine/engine.h"
#include "runtime/memory/cuda_device_memory.h"
#include "runtime/process/pool_origins.h"

namespace hotpack {

// A context's engine and its memory. Never destroyed: frees arrive until the very end of the process, and the engine's
// destructor would have to wait for its planning thread.
struct ContextArena {
  ContextArena(CUcontext context_of, std::unique_ptr<ContextMemory> memory_of)
      : number(NextNumber()), context(context_of), memory(std::move(memory_of)) {}
  const uint32_t number;  // unique among the arenas of the process (up to 16384 of them)
  const CUcontext context;
  const std::unique_ptr<ContextMemory> memory;
  Engine* engine = nullptr;  // set before the arena is published
  PoolOrigins origins;       // blocks that were requested from a driver's pool

 private:
  static uint32_t NextNumber() {
    static constinit std::atomic<uint32_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) % (1u << 14);
  }
};

// Lookups are lock-free and O(arenas); usually there is one arena. Any thread may call any function except
// AbandonAfterFork.
class ArenaTable {
 public:
  static constexpr size_t kCapacity = 64;

  // Returns the arena of `context`, or null.
  ContextArena* Find(CUcontext context) const {
    const size_t count = count_.load(std::memory_order_acquire);
    for (size_t i = 0; i < count; ++i) {
      if (slots_[i].context.load(std::memory_order_acquire) == context) return slots_[i].arena.load();
    }
    return nullptr;
  }

  // Returns the arena whose reservation contains `address`, or null.
  ContextArena* FindOwner(DeviceAddress address) const {
    const size_t count = count_.load(std::memory_order_acquire);
    for (size_t i = 0; i < count; ++i) {
      ContextArena* arena = slots_[i].arena.load(std::memory_order_acquire);
      if (arena != nullptr && arena->engine->Owns(address)) return arena;
    }
    return nullptr;
  }

  // Returns the arena of `context`. If there is none, one thread calls make() -> ContextArena*, without a lock (it may
  // call the driver). Other threads that ask for the same context wait. Returns null if make() returned null or threw,
  // the table is full, or the context is ending.
  template <typename Make>
  ContextArena* FindOrMake(CUcontext context, Make make);

  // Removes the arena of `context`, after waiting for one that is being made. The caller retires it.
  ContextArena* Remove(CUcontext context);

  // From BeginEnd to FinishEnd no arena is made for `context`, which is being destroyed. Otherwise a request from
  // another thread could leave an arena behind for a later context with the same handle.
  void BeginEnd(CUcontext context);
  void FinishEnd(CUcontext context);
  bool IsEnding(CUcontext context) const;

  template <typename Function>
  void ForEach(Function function) const {
    const size_t count = count_.load(std::memory_order_acquire);
    for (size_t i = 0; i < count; ++i) {
      if (ContextArena* arena = slots_[i].arena.load(std::memory_order_acquire)) function(arena);
    }
  }

  // Returns the number of live arenas.
  size_t Size() const;

  // In a forked child, which has only the calling thread: abandons every engine and empties the table.
  void AbandonAfterFork();
  // Returns true in a forked child for an address of an arena of its parent (or of that one's), as it was at the fork.
  bool Inherited(DeviceAddress address) const;

 private:
  struct Slot {
    std::atomic<CUcontext> context{nullptr};    // null: free (a slot may be reused)
    std::atomic<ContextArena*> arena{nullptr};  // null with a context: being made
  };
  Slot* Claim(CUcontext context, bool* claimed);
  static void WaitUntilMade(const Slot& slot, CUcontext context) {
    while (slot.context.load() == context && slot.arena.load() == nullptr) sched_yield();
  }

  Slot slots_[kCapacity];
  static constexpr size_t kEndings = 16;  // at a time; further ones wait
  std::atomic<CUcontext> ending_[kEndings] = {};
  std::atomic<int> endings_{0};
  std::atomic<size_t> count_{0};  // slots [0, count_) have been used
  struct Reservation {
    DeviceAddress begin = 0;
    uint64_t bytes = 0;
  };
  // Written in the child before it has a second thread.
  Reservation inherited_[kCapacity] = {};
  size_t inherited_count_ = 0;
  std::atomic<bool> busy_{false};  // held for a few instructions while a slot is claimed, never across a driver call
};

template <typename Make>
ContextArena* ArenaTable::FindOrMake(CUcontext context, Make make) {
  if (ContextArena* arena = Find(context)) return arena;
  bool claimed = false;
  Slot* slot = Claim(context, &claimed);
  if (slot == nullptr) return nullptr;
  if (!claimed) {  // another thread makes it
    WaitUntilMade(*slot, context);
    return Find(context);
  }
  ContextArena* arena = nullptr;
  try {
    // Checked after the slot is claimed: either this thread sees the mark, or Remove, which follows it, sees the slot.
    if (!IsEnding(context)) arena = make();
  } catch (...) {  // the host is out of memory
  }
  if (arena == nullptr) {
    slot->context.store(nullptr);
  } else {
    slot->arena.store(arena);
  }
  return arena;
}

// The process's table. No destructor to run at exit.
extern ArenaTable process_arenas;
inline ArenaTable& Arenas() { return process_arenas; }

}  // namespace hotpack
