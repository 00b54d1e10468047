// The table of hooks: for each the function that comes next, and the driver's own pointers that stand for it.
//
// "Next" is what a call is handed on to: the next definition of the symbol after this library in search order (so that
// another preload is not skipped), else the driver's. "Known" are the pointers by which a look-up's answer is
// recognised: what the driver exports under the name and what its cuGetProcAddress gives for the variant.
#pragma once

#include "preload/hooks/hook_list.h"
#include "preload/hooks/work_list.h"

namespace hotpack {

enum class HookId : int {
#define HOTPACK_ID(symbol, ...) k##symbol,
  HOTPACK_HOOKS(HOTPACK_ID) HOTPACK_WORK(HOTPACK_ID)
#undef HOTPACK_ID
      kCount
};

// Finds next and known pointers of all hooks if the driver library is there now. Cheap when done. Thread-safe: what two
// threads find at once is the same. True when done.
bool BindHooks();

// Our function for a pointer that is a known variant of a hooked driver function and was looked up as `name` by the
// code at `caller`; any other pointer, and what a preload behind us looks up for itself, unchanged. O(hooks). Binds if
// need be.
void* Substitute(void* function, const char* name, const void* caller);

// What a call of this hook is handed on to: next, or past every preload when the hook was entered from within a hook.
// Never null: without a driver it is a function that answers
// CUDA_ERROR_NOT_INITIALIZED.
void* NextOf(HookId id);

}  // namespace hotpack

#define HOTPACK_EXPORT extern "C" __attribute__((visibility("default")))

// The hook functions. They have names of their own, because cuda.h makes macros of most driver names; the exported name
// is set by the assembler label. Linked with -Bsymbolic, so their addresses are ours even if another preload has the
// same.
#define HOTPACK_DECLARE(symbol, base, version, stream, parameters) \
  HOTPACK_EXPORT CUresult Hook_##symbol parameters __asm__(#symbol);
HOTPACK_HOOKS(HOTPACK_DECLARE)
#undef HOTPACK_DECLARE

// Typed: HOTPACK_NEXT(cuMemAlloc_v2)(&address, bytes).
#define HOTPACK_NEXT(symbol) reinterpret_cast<decltype(&Hook_##symbol)>(::hotpack::NextOf(::hotpack::HookId::k##symbol))
