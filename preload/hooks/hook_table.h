// The table of hooks. Each has a "next" function, and the driver's "known" pointers that stand for it.
//
// 1. A call passes through to "next": the next definition of the symbol after this library in search order, so that
//    another preload is not skipped; else the driver's.
// 2. A look-up's answer is recognised by "known" pointers: the driver's export of the name, and its cuGetProcAddress
//    answer for the variant.
#pragma once

#include <atomic>

#include "preload/hooks/hook_list.h"
#include "preload/hooks/work_list.h"

namespace hotpack {

enum class HookId : int {
#define HOTPACK_ID(symbol, ...) k##symbol,
  HOTPACK_HOOKS(HOTPACK_ID) HOTPACK_WORK(HOTPACK_ID)
#undef HOTPACK_ID
      kCount
};

// Finds the next and known pointers of all hooks if the driver library is loaded. Returns true when done; cheap then.
// Thread-safe: two threads at once find the same pointers.
bool BindHooks();

// Returns hotpack's function for a pointer that is a known variant of a hooked function, looked up as `name` by the
// code at `caller`. Any other pointer passes through, and so does what a preload behind hotpack looks up for itself.
// O(hooks). Binds if necessary.
void* Substitute(void* function, const char* name, const void* caller);

// Returns the function that a call of this hook passes through to: next, or past every preload when the hook was
// entered from within a hook. Never null: without a driver it is a function that returns CUDA_ERROR_NOT_INITIALIZED.
void* NextOf(HookId id);

// Makes calls of a watched function, which went to *way, go to `function`. Returns false if the driver has no such
// function, or is not loaded yet.
bool RedirectWork(HookId id, void* function, std::atomic<void*>* way);

// Returns where calls of a watched function go. Call after RedirectWork has returned true for any of them.
void* JumpOf(HookId id);
template <typename Function>
Function JumpOf(HookId id) {
  return reinterpret_cast<Function>(JumpOf(id));
}

}  // namespace hotpack

#define HOTPACK_EXPORT extern "C" __attribute__((visibility("default")))

// The hook functions. Their C++ names differ, because cuda.h makes macros of most driver names; the assembler label
// sets the exported name. Linked with -Bsymbolic, so their addresses are hotpack's even if another preload has the same
// names.
#define HOTPACK_DECLARE(symbol, base, version, stream, parameters, ...) \
  HOTPACK_EXPORT CUresult Hook_##symbol parameters __asm__(#symbol);
HOTPACK_HOOKS(HOTPACK_DECLARE)
#undef HOTPACK_DECLARE

// Typed: HOTPACK_NEXT(cuMemAlloc_v2)(&address, bytes).
#define HOTPACK_NEXT(symbol) reinterpret_cast<decltype(&Hook_##symbol)>(::hotpack::NextOf(::hotpack::HookId::k##symbol))
