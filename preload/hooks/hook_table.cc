#include "preload/hooks/hook_table.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "preload/collect/launch_notes.h"
#include "preload/hooks/doctor.h"
#include "preload/process/driver_access.h"
#include "preload/process/elf_symbols.h"
#include "preload/process/hook_scope.h"

namespace hotpack {
// The cell that hotpack_noted_* of work_hooks.cc reads.
struct NotedCell {
  void* next;
  const NotedWork* row;
};
}  // namespace hotpack

// work_hooks.cc: the assembler code of each watched function and the pointer that it jumps through.
#define HOTPACK_DECLARE_WORK(symbol, ...)                   \
  extern "C" void hotpack_work_##symbol() __asm__(#symbol); \
  extern "C" void* hotpack_next_##symbol;                   \
  extern "C" void hotpack_noted_##symbol();                 \
  extern "C" hotpack::NotedCell hotpack_noted_cell_##symbol;
HOTPACK_WORK(HOTPACK_DECLARE_WORK)
#undef HOTPACK_DECLARE_WORK

namespace hotpack {

const bool kHooksPresent = true;

namespace {

constexpr int kCount = static_cast<int>(HookId::kCount);

struct Row {
  const char* symbol;
  const char* base;
  int version;
  cuuint64_t stream;  // CU_GET_PROC_ADDRESS_LEGACY_STREAM or _PER_THREAD_DEFAULT_STREAM
  void* hook;
  void** jump;  // of a watched function; null otherwise
  void* noted;  // ... and its way by the launch collector
  NotedCell* cell;
};

#define HOTPACK_ROW(symbol, base, version, stream, ...) \
  {#symbol, base, version, stream, reinterpret_cast<void*>(&Hook_##symbol), nullptr, nullptr, nullptr},
#define HOTPACK_WORK_ROW(symbol, base, version, stream, where) \
  {#symbol,                                                    \
   base,                                                       \
   version,                                                    \
   stream,                                                     \
   reinterpret_cast<void*>(&hotpack_work_##symbol),            \
   &hotpack_next_##symbol,                                     \
   reinterpret_cast<void*>(&hotpack_noted_##symbol),           \
   &hotpack_noted_cell_##symbol},
const Row kRows[] = {HOTPACK_HOOKS(HOTPACK_ROW) HOTPACK_WORK(HOTPACK_WORK_ROW)};
#undef HOTPACK_ROW
#undef HOTPACK_WORK_ROW
static_assert(sizeof(kRows) / sizeof(kRows[0]) == kCount);
static_assert(kCount <= static_cast<int>(kDoctorHooks));

struct State {
  std::atomic<void*> next{nullptr};
  std::atomic<void*> exported{nullptr};
  std::atomic<void*> looked_up{nullptr};
  std::atomic<void*> answered{nullptr};        // by dlsym of a preload behind this library
  std::atomic<void*> looked_up_next{nullptr};  // by its cuGetProcAddress
};
constinit State states[kCount];
constinit std::atomic<bool> bound{false};
constinit __attribute__((tls_model("initial-exec"))) thread_local bool binding = false;

CUresult NoDriver() { return CUDA_ERROR_NOT_INITIALIZED; }

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

void* LookUpVariant(GetProcAddress get, const Row& row) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (get == nullptr || get(row.base, &function, row.version, row.stream, &status) != CUDA_SUCCESS) return nullptr;
  return function;
}

// A look-up by version returns the newest variant that is not above it. If the driver lacks row A's variant, the answer
// may be the older variant B of the same base name. It then belongs to B alone.
bool BelongsToAnotherRow(int self, const void* function) {
  for (int i = 0; i < kCount; ++i) {
    if (i != self && states[i].exported.load(std::memory_order_relaxed) == function) return true;
  }
  return false;
}

// Returns true for a function of the driver's own that some row has.
bool IsDrivers(const void* function) {
  for (const State& state : states) {
    if (function != nullptr && (state.exported.load(std::memory_order_relaxed) == function ||
                                state.looked_up.load(std::memory_order_relaxed) == function)) {
      return true;
    }
  }
  return false;
}

void BindNext(int i, void* function) {
  states[i].next.store(function, std::memory_order_release);
  if (kRows[i].jump == nullptr) return;
  void* to = function;
  if (const NotedWork* row = NotesLaunches() ? FindNotedWork(kRows[i].symbol) : nullptr) {
    kRows[i].cell->row = row;
    __atomic_store_n(&kRows[i].cell->next, function, __ATOMIC_RELEASE);
    to = kRows[i].noted;
  }
  __atomic_store_n(kRows[i].jump, to, __ATOMIC_RELEASE);
}

// A preload behind this library may answer dlsym and cuGetProcAddress with functions that it does not export. These are
// known too, and calls pass through to them.
void BindBehind(void* library, GetProcAddress own_get) {
  const auto get = reinterpret_cast<GetProcAddress>(NextSymbol("cuGetProcAddress_v2"));
  for (int i = 0; i < kCount; ++i) {
    State& state = states[i];
    void* answered = AskNextDlsym(library, kRows[i].symbol);
    void* looked_up = get != own_get ? LookUpVariant(get, kRows[i]) : nullptr;
    if (IsDrivers(answered)) answered = nullptr;
    if (IsDrivers(looked_up)) looked_up = nullptr;
    state.answered.store(answered, std::memory_order_relaxed);
    state.looked_up_next.store(looked_up, std::memory_order_relaxed);
    void* behind = answered != nullptr ? answered : looked_up;
    const void* next = state.next.load(std::memory_order_relaxed);
    if (behind != nullptr && (next == nullptr || IsDrivers(next))) BindNext(i, behind);  // its exports come first
  }
}

}  // namespace

static bool BindAll() {
  const DlsymFunction real_dlsym = RealDlsym();
  void* library = DriverLibrary();
  for (int i = 0; i < kCount; ++i) {
    void* exported = library != nullptr ? real_dlsym(library, kRows[i].symbol) : nullptr;
    void* next = real_dlsym(RTLD_NEXT, kRows[i].symbol);  // after this library: real_dlsym is called from here
    if (exported != nullptr) states[i].exported.store(exported, std::memory_order_relaxed);
    if (next == nullptr) next = exported;
    if (next != nullptr) BindNext(i, next);
  }
  if (library == nullptr) return false;  // it may be loaded later
  const auto get = reinterpret_cast<GetProcAddress>(real_dlsym(library, "cuGetProcAddress_v2"));
  for (int i = 0; i < kCount; ++i) {
    void* function = LookUpVariant(get, kRows[i]);
    if (function == nullptr || BelongsToAnotherRow(i, function)) continue;
    states[i].looked_up.store(function, std::memory_order_relaxed);
    if (states[i].next.load(std::memory_order_relaxed) == nullptr) BindNext(i, function);
  }
  if (Enabled()) BindBehind(library, get);  // else look-ups are not substituted, and only linked calls arrive
  if (Doctor() != nullptr) {
    for (int i = 0; i < kCount; ++i) DoctorNotesHook(i, kRows[i].symbol, states[i].exported.load() != nullptr);
    DoctorNotesDriver();
  }
  bound.store(true, std::memory_order_release);
  return true;
}

// A preload that is asked for its functions may look up others: these look-ups are not substituted.
bool BindHooks() {
  if (bound.load(std::memory_order_acquire)) return true;
  if (binding) return false;
  binding = true;
  const bool done = BindAll();
  binding = false;
  return done;
}

// Returns true for a name whose variants should all be hooked, in cuGetProcAddress form or as exported. (Of copies that
// wait for the legacy stream only the per-thread variants are hooked.)
static bool IsHookedName(const char* name) {
  for (const Row& row : kRows) {
    if (name != nullptr && row.stream == CU_GET_PROC_ADDRESS_LEGACY_STREAM &&
        (strcmp(name, row.base) == 0 || strcmp(name, row.symbol) == 0))
      return true;
  }
  return false;
}

void* Substitute(void* function, const char* name, const void* caller) {
  if (function == nullptr || !BindHooks()) return function;
  for (int i = 0; i < kCount; ++i) {
    const State& state = states[i];
    if (state.exported.load(std::memory_order_relaxed) == function ||
        state.looked_up.load(std::memory_order_relaxed) == function ||
        state.answered.load(std::memory_order_relaxed) == function ||
        state.looked_up_next.load(std::memory_order_relaxed) == function ||
        state.next.load(std::memory_order_relaxed) == function) {
      const bool theirs = IsLaterInterposer(caller, kRows[i].symbol);
      if (Doctor() != nullptr && !theirs) [[unlikely]]
        DoctorNotesLookUp(name, caller, i, true);
      return theirs ? function : kRows[i].hook;
    }
  }
  if (Doctor() != nullptr) [[unlikely]]
    DoctorNotesLookUp(name, caller, -1, IsHookedName(name));
  return function;
}

void* NextOf(HookId id) {
  if (!HookScope::Nested()) DoctorNotesCall(static_cast<int>(id));
  State& state = states[static_cast<int>(id)];
  if (HookScope::Nested()) {
    if (void* exported = state.exported.load(std::memory_order_acquire)) return exported;
  }
  void* next = state.next.load(std::memory_order_acquire);
  if (next != nullptr) return next;
  BindHooks();
  next = state.next.load(std::memory_order_acquire);
  return next != nullptr ? next : reinterpret_cast<void*>(&NoDriver);
}

bool RedirectWork(HookId id, void* function, std::atomic<void*>* way) {
  const int i = static_cast<int>(id);
  if (!BindHooks() || states[i].next.load(std::memory_order_acquire) == nullptr) return false;
  way->store(__atomic_load_n(kRows[i].jump, __ATOMIC_ACQUIRE), std::memory_order_release);
  __atomic_store_n(kRows[i].jump, function, __ATOMIC_RELEASE);
  return true;
}

void* JumpOf(HookId id) { return __atomic_load_n(kRows[static_cast<int>(id)].jump, __ATOMIC_ACQUIRE); }

}  // namespace hotpack

// Called at the first call of a watched function that the dynamic linker bound, before any look-up.
extern "C" __attribute__((visibility("hidden"))) void hotpack_bind_work() { hotpack::BindHooks(); }
