// A stub libcuda.so.1 for the tests of the hooks: enough state for sensible results, and a count of every call that
// reaches it. These functions inspect it; the rest of it is the driver's own interface.
#pragma once

#include <cstdint>

#define STUB_API extern "C" __attribute__((visibility("default")))

STUB_API long stub_count(const char* symbol);  // calls of the exported function that arrived here
STUB_API void* stub_real(const char* symbol);  // its address, whatever dlsym says
STUB_API const uint64_t* stub_last_work();     // eleven arguments of the last work-submitting call
STUB_API long stub_lookups(const char* base);  // cuGetProcAddress calls for this name (empty: all)
// Calls `visit` for each different look-up so far. `symbol`: the stub's function of that look-up, null if it has none.
STUB_API void stub_each_lookup(void (*visit)(const char* base, int version, uint64_t flags, const char* symbol));
STUB_API long stub_syncs_while_capturing();    // synchronisations and events refused for a capture's sake
STUB_API long stub_chunks();                   // cuMemCreate handles not released
STUB_API int stub_handle_types();              // requestedHandleTypes of the last cuMemCreate
STUB_API void stub_refuse_handle_types(bool);  // cuMemCreate refuses memory with handle types
STUB_API long stub_mapped();                   // cuMemMap minus cuMemUnmap, in chunks
STUB_API void stub_deinitialize();             // from here on every call gives CUDA_ERROR_DEINITIALIZED
STUB_API uint32_t* stub_debugger_flag();       // cudbgIpcFlag: set by cuda-gdb in the driver's memory
STUB_API void stub_before(const char* symbol, void (*meanwhile)());  // once, at the start of the function's next call
STUB_API void stub_fail_init();                                      // cuInit gives CUDA_ERROR_NO_DEVICE
