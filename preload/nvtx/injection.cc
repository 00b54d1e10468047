// libhotpack_nvtx.so, which NVTX loads by NVTX_INJECTION64_PATH. Each range and mark goes to the host
// (collector_host.h) and then passes through to the earlier injection library (HOTPACK_NVTX_NEXT), if there is one.
//
// Every object compiled with NVTX's header has an NVTX instance, and each calls InitializeInjectionNvtx2 once
// (nvtxInit.h). It jumps through tables that the injection fills. The injection chooses handles of domains and strings.
// If there is a next injection, they are that one's.
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>

#include "preload/collect/collector_host.h"
#include "preload/nvtx/names.h"

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);

namespace hotpack::nvtx {
namespace {

const hotpack_collector_host* host = nullptr;  // set once, before any function below is called
std::atomic<uint64_t> next_id{1};

int Tell(hotpack_note_range kind, uint64_t id, const std::string& name) {
  return host != nullptr ? host->range(kind, id, name.c_str()) : 0;
}

uint64_t Stack(nvtxDomainHandle_t domain) { return reinterpret_cast<uintptr_t>(domain); }

// X(name, module, id): the functions answered here.
#define HOTPACK_NVTX(X)                                                                 \
  X(MarkEx, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkEx)                                 \
  X(MarkA, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkA)                                   \
  X(MarkW, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkW)                                   \
  X(RangeStartEx, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartEx)                     \
  X(RangeStartA, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartA)                       \
  X(RangeStartW, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartW)                       \
  X(RangeEnd, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeEnd)                             \
  X(RangePushEx, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushEx)                       \
  X(RangePushA, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushA)                         \
  X(RangePushW, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushW)                         \
  X(RangePop, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePop)                             \
  X(DomainMarkEx, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainMarkEx)                   \
  X(DomainRangeStartEx, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeStartEx)       \
  X(DomainRangeEnd, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeEnd)               \
  X(DomainRangePushEx, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx)         \
  X(DomainRangePop, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop)               \
  X(DomainRegisterStringA, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringA) \
  X(DomainRegisterStringW, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringW) \
  X(DomainCreateA, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA)                 \
  X(DomainCreateW, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateW)                 \
  X(DomainDestroy, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainDestroy)

// The next injection's functions; null: it lacks this one.
#define HOTPACK_NVTX_NEXT(name, module, id) std::atomic<nvtx##name##_impl_fntype> next_##name{nullptr};
HOTPACK_NVTX(HOTPACK_NVTX_NEXT)
#undef HOTPACK_NVTX_NEXT

// Catches all exceptions of tell(), so that none reaches the program. Out of host memory: the range is not noted.
template <typename Tells>
int Caught(Tells tell) noexcept try {
  return tell();
} catch (...) {
  return -1;
}

// --- marks -----------------------------------------------------------------------------------------------------------

void NVTX_API OnDomainMarkEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  Caught([&] { return Tell(HOTPACK_RANGE_MARK, 0, Label(domain, attributes)); });
  if (const auto next = next_DomainMarkEx.load()) next(domain, attributes);
}
void NVTX_API OnMarkEx(const nvtxEventAttributes_t* attributes) {
  Caught([&] { return Tell(HOTPACK_RANGE_MARK, 0, Label(nullptr, attributes)); });
  if (const auto next = next_MarkEx.load()) next(attributes);
}
void NVTX_API OnMarkA(const char* message) {
  Caught([&] { return Tell(HOTPACK_RANGE_MARK, 0, Text(message)); });
  if (const auto next = next_MarkA.load()) next(message);
}
void NVTX_API OnMarkW(const wchar_t* message) {
  Caught([&] { return Tell(HOTPACK_RANGE_MARK, 0, Text(message)); });
  if (const auto next = next_MarkW.load()) next(message);
}

// --- start and end ---------------------------------------------------------------------------------------------------

// `id`: the next injection's; 0 if there is none. name() -> std::string.
template <typename Name>
nvtxRangeId_t Started(nvtxRangeId_t id, Name name) {
  if (id == 0) id = next_id.fetch_add(1);
  Caught([&] { return Tell(HOTPACK_RANGE_START, id, name()); });
  return id;
}

nvtxRangeId_t NVTX_API OnDomainRangeStartEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  const auto next = next_DomainRangeStartEx.load();
  return Started(next != nullptr ? next(domain, attributes) : 0, [=] { return Label(domain, attributes); });
}
nvtxRangeId_t NVTX_API OnRangeStartEx(const nvtxEventAttributes_t* attributes) {
  const auto next = next_RangeStartEx.load();
  return Started(next != nullptr ? next(attributes) : 0, [=] { return Label(nullptr, attributes); });
}
nvtxRangeId_t NVTX_API OnRangeStartA(const char* message) {
  const auto next = next_RangeStartA.load();
  return Started(next != nullptr ? next(message) : 0, [=] { return Text(message); });
}
nvtxRangeId_t NVTX_API OnRangeStartW(const wchar_t* message) {
  const auto next = next_RangeStartW.load();
  return Started(next != nullptr ? next(message) : 0, [=] { return Text(message); });
}
void NVTX_API OnDomainRangeEnd(nvtxDomainHandle_t domain, nvtxRangeId_t id) {
  Caught([&] { return Tell(HOTPACK_RANGE_END, id, ""); });
  if (const auto next = next_DomainRangeEnd.load()) next(domain, id);
}
void NVTX_API OnRangeEnd(nvtxRangeId_t id) {
  Caught([&] { return Tell(HOTPACK_RANGE_END, id, ""); });
  if (const auto next = next_RangeEnd.load()) next(id);
}

// --- push and pop ----------------------------------------------------------------------------------------------------

int NVTX_API OnDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  const int level = Caught([&] { return Tell(HOTPACK_RANGE_PUSH, Stack(domain), Label(domain, attributes)); });
  const auto next = next_DomainRangePushEx.load();
  return next != nullptr ? next(domain, attributes) : level;
}
int NVTX_API OnRangePushEx(const nvtxEventAttributes_t* attributes) {
  const int level = Caught([&] { return Tell(HOTPACK_RANGE_PUSH, 0, Label(nullptr, attributes)); });
  const auto next = next_RangePushEx.load();
  return next != nullptr ? next(attributes) : level;
}
int NVTX_API OnRangePushA(const char* message) {
  const int level = Caught([&] { return Tell(HOTPACK_RANGE_PUSH, 0, Text(message)); });
  const auto next = next_RangePushA.load();
  return next != nullptr ? next(message) : level;
}
int NVTX_API OnRangePushW(const wchar_t* message) {
  const int level = Caught([&] { return Tell(HOTPACK_RANGE_PUSH, 0, Text(message)); });
  const auto next = next_RangePushW.load();
  return next != nullptr ? next(message) : level;
}
int NVTX_API OnDomainRangePop(nvtxDomainHandle_t domain) {
  const int level = Caught([&] { return Tell(HOTPACK_RANGE_POP, Stack(domain), ""); });
  const auto next = next_DomainRangePop.load();
  return next != nullptr ? next(domain) : level;
}
int NVTX_API OnRangePop() {
  const int level = Caught([&] { return Tell(HOTPACK_RANGE_POP, 0, ""); });
  const auto next = next_RangePop.load();
  return next != nullptr ? next() : level;
}

// --- domains and strings ---------------------------------------------------------------------------------------------

// Returns a unique handle, for when the next injection gives none.
template <typename Handle>
Handle Own(Handle handle) {
  return handle != nullptr ? handle : reinterpret_cast<Handle>(new (std::nothrow) char);
}

template <typename Character>
nvtxStringHandle_t Registered(nvtxStringHandle_t given, const Character* text) {
  const nvtxStringHandle_t handle = Own(given);
  Caught([&] { return Strings().Set(handle, Text(text)), 0; });
  return handle;
}
template <typename Character>
nvtxDomainHandle_t Created(nvtxDomainHandle_t given, const Character* name) {
  const nvtxDomainHandle_t handle = Own(given);
  Caught([&] { return Domains().Set(handle, Text(name)), 0; });
  return handle;
}

nvtxStringHandle_t NVTX_API OnDomainRegisterStringA(nvtxDomainHandle_t domain, const char* text) {
  const auto next = next_DomainRegisterStringA.load();
  return Registered(next != nullptr ? next(domain, text) : nullptr, text);
}
nvtxStringHandle_t NVTX_API OnDomainRegisterStringW(nvtxDomainHandle_t domain, const wchar_t* text) {
  const auto next = next_DomainRegisterStringW.load();
  return Registered(next != nullptr ? next(domain, text) : nullptr, text);
}
nvtxDomainHandle_t NVTX_API OnDomainCreateA(const char* name) {
  const auto next = next_DomainCreateA.load();
  return Created(next != nullptr ? next(name) : nullptr, name);
}
nvtxDomainHandle_t NVTX_API OnDomainCreateW(const wchar_t* name) {
  const auto next = next_DomainCreateW.load();
  return Created(next != nullptr ? next(name) : nullptr, name);
}
void NVTX_API OnDomainDestroy(nvtxDomainHandle_t domain) {
  Caught([&] { return Domains().Forget(domain), 0; });
  if (const auto next = next_DomainDestroy.load()) next(domain);
}

// --- loading ---------------------------------------------------------------------------------------------------------

const hotpack_collector_host* FindHost() {
  using Get = const hotpack_collector_host* (*)(uint32_t);
  auto get = reinterpret_cast<Get>(dlsym(RTLD_DEFAULT, "hotpack_get_collector_host"));
  if (get == nullptr) {  // libhotpack.so may have been loaded outside the global scope
    if (void* library = dlopen("libhotpack.so.0", RTLD_LAZY | RTLD_NOLOAD)) {
      get = reinterpret_cast<Get>(dlsym(library, "hotpack_get_collector_host"));
    }
  }
  return get != nullptr ? get(HOTPACK_COLLECTOR_HOST_VERSION) : nullptr;
}

NvtxInitializeInjectionNvtxFunc_t FindNext() {
  const char* path = getenv("HOTPACK_NVTX_NEXT");
  if (path == nullptr || path[0] == '\0') return nullptr;
  void* library = dlopen(path, RTLD_LAZY);
  void* initialize = library != nullptr ? dlsym(library, "InitializeInjectionNvtx2") : nullptr;
  if (initialize == reinterpret_cast<void*>(&InitializeInjectionNvtx2)) return nullptr;
  if (initialize == nullptr && host != nullptr) {
    char line[400];
    snprintf(line, sizeof(line), "HOTPACK_NVTX_NEXT: %.250s is no NVTX injection library; ranges are not handed on",
             path);
    host->say(line);
  }
  return reinterpret_cast<NvtxInitializeInjectionNvtxFunc_t>(initialize);
}

struct Tables {
  NvtxFunctionTable core = nullptr, core2 = nullptr;
  unsigned core_size = 0, core2_size = 0;

  NvtxFunctionPointer* Slot(int module, unsigned id) const {
    if (module == NVTX_CB_MODULE_CORE) return id < core_size ? core[id] : nullptr;
    return id < core2_size ? core2[id] : nullptr;
  }
};

bool FindTables(NvtxGetExportTableFunc_t get, Tables* tables) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(NvtxExportTableCallbacks)) return false;
  return callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &tables->core, &tables->core_size) != 0 &&
         callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &tables->core2, &tables->core2_size) != 0;
}

// Puts `ours` in a slot and keeps the next injection's function. `before`: NVTX's own function.
template <typename Function>
void Replace(const Tables& tables, int module, unsigned id, NvtxFunctionPointer before, Function ours,
             std::atomic<Function>* next) {
  NvtxFunctionPointer* slot = tables.Slot(module, id);
  if (slot == nullptr) return;
  if (*slot != before && *slot != reinterpret_cast<NvtxFunctionPointer>(ours))
    next->store(reinterpret_cast<Function>(*slot));
  *slot = reinterpret_cast<NvtxFunctionPointer>(ours);
}

void LockNames() {
  Domains().Lock();
  Strings().Lock();
}
void UnlockNames() {
  Strings().Unlock();
  Domains().Unlock();
}

int Initialize(NvtxGetExportTableFunc_t get) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  static const bool once = (host = FindHost(), pthread_atfork(LockNames, UnlockNames, UnlockNames) == 0);
  static const NvtxInitializeInjectionNvtxFunc_t next = FindNext();
  (void)once;
  Tables tables;
  if (get == nullptr || !FindTables(get, &tables)) return next != nullptr ? next(get) : 0;
  NvtxFunctionPointer before[2][32] = {};
  static_assert(NVTX_CBID_CORE_SIZE <= 32 && NVTX_CBID_CORE2_SIZE <= 32);
  for (unsigned i = 0; i < 32; ++i) {
    if (NvtxFunctionPointer* slot = tables.Slot(NVTX_CB_MODULE_CORE, i)) before[0][i] = *slot;
    if (NvtxFunctionPointer* slot = tables.Slot(NVTX_CB_MODULE_CORE2, i)) before[1][i] = *slot;
  }
  const int answer = next != nullptr ? next(get) : 0;
  if (host == nullptr) return answer;
#define HOTPACK_NVTX_REPLACE(name, module, id)                                                                       \
  Replace<nvtx##name##_impl_fntype>(tables, module, id, before[module == NVTX_CB_MODULE_CORE ? 0 : 1][id], On##name, \
                                    &next_##name);
  HOTPACK_NVTX(HOTPACK_NVTX_REPLACE)
#undef HOTPACK_NVTX_REPLACE
  return 1;
}

}  // namespace
}  // namespace hotpack::nvtx

// NVTX: nonzero if the injection is there, else its functions become empty ones.
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) try { return hotpack::nvtx::Initialize(get); } catch (...) {
  return 0;
}
