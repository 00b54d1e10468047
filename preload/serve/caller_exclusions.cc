#include "preload/serve/caller_exclusions.h"

#include <unwind.h>

#include "preload/process/elf_symbols.h"
#include "preload/process/option_table.h"
#include "preload/serve/ipc_exclusions.h"

namespace hotpack {

constinit std::atomic<const void*> served_caller{nullptr};

namespace {

enum class Caller : uint8_t { kServed = 0, kLeft = 1, kInterposer = 2 };

// Known return addresses, each shifted left by two, with the Caller in the low bits; 0: none. Four may share a set.
// With one place a set, two frames of every request could push each other out, by the libraries' layout alone. Each
// request would then take the loader's lock, which a fork leaves locked in the child. An address that loses its place
// is looked up again. A library that is unloaded may leave a stale entry, which another library meets only if a call of
// both returns to the same byte.
constexpr unsigned kSets = 64, kWays = 4;
constinit std::atomic<uint64_t> known[kSets][kWays] = {};

bool MatchesDriverCallers(const char* path) {
  const char* chosen = GetOptions().driver_callers;
  if (chosen == nullptr) return MatchesName(kDriverCallers, path);
  if (chosen[0] != '+') return MatchesName(chosen, path);
  return MatchesName(kDriverCallers, path) || MatchesName(chosen + 1, path);
}

Caller Classify(const void* code) {
  const auto address = reinterpret_cast<uintptr_t>(code);
  std::atomic<uint64_t>* const set = known[(address ^ address >> 8 ^ address >> 16) % kSets];
  std::atomic<uint64_t>* slot = &set[(address >> 6) % kWays];  // the one that is replaced if all are taken
  for (unsigned way = 0; way < kWays; ++way) {
    const uint64_t seen = set[way].load(std::memory_order_relaxed);
    if (seen >> 2 == address) return static_cast<Caller>(seen & 3);
    if (seen == 0) slot = &set[way];
  }
  char path[4096];
  bool defines = false;
  Caller caller = Caller::kServed;
  if (FindObject(code, "cuMemAlloc_v2", path, sizeof(path), &defines)) {
    caller = MatchesDriverCallers(path) ? Caller::kLeft : defines ? Caller::kInterposer : Caller::kServed;
  }
  slot->store(uint64_t{address} << 2 | static_cast<uint64_t>(caller), std::memory_order_relaxed);
  return caller;
}

// Finds the caller behind an earlier preload, which passes on the requests of all libraries. Its frames, and those of
// this library, which defines the symbol too, are skipped. Walks the stack at each such request. No heap.
Caller FindBehindInterposer() {
  Caller caller = Caller::kServed;
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void* found) {
        const auto* code = reinterpret_cast<const void*>(_Unwind_GetIP(context));
        const Caller seen = code != nullptr ? Classify(code) : Caller::kServed;
        if (seen == Caller::kInterposer) return _URC_NO_REASON;
        *static_cast<Caller*>(found) = seen;
        return _URC_END_OF_STACK;
      },
      &caller);
  return caller;
}

}  // namespace

bool CalledByNccl() {
  bool found = false;
  // Earlier preloads are skipped, as above, and so are this library's own frames.
  const auto visit = [](_Unwind_Context* context, void* data) {
    const auto* code = reinterpret_cast<const void*>(_Unwind_GetIP(context));
    char path[4096];
    bool interposer = false;
    if (!FindObject(code, "cuMemAlloc_v2", path, sizeof(path), &interposer)) return _URC_END_OF_STACK;
    if (interposer) return _URC_NO_REASON;
    *static_cast<bool*>(data) = MatchesName("libnccl*.so*", path);
    return _URC_END_OF_STACK;
  };
  _Unwind_Backtrace(visit, &found);
  return found;
}

// A size may be excluded meanwhile. Either its ForgetServedCaller() comes after the store, or the second look sees it.
bool IsLeftToDriverSlow(const void* caller, uint64_t bytes) {
  const Caller kind = Classify(caller);
  if (kind == Caller::kLeft) return true;
  if (kind == Caller::kInterposer && FindBehindInterposer() == Caller::kLeft) return true;
  if (IsExcluded(bytes)) return true;
  if (kind == Caller::kServed && excluded_sizes.load() == 0) {
    served_caller.store(caller);
    if (excluded_sizes.load() != 0) ForgetServedCaller();
  }
  return false;
}

void ForgetServedCaller() { served_caller.store(nullptr); }

}  // namespace hotpack
