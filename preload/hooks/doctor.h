// Notes for `hotpack doctor` (HOTPACK_DOCTOR). Nothing but a look at a pointer without it; no heap, no driver call.
#pragma once

#include <atomic>

#include "preload/hooks/doctor_file.h"

namespace hotpack {

extern constinit std::atomic<DoctorFile*> doctor_file;  // null: nobody asks

inline DoctorFile* Doctor() { return doctor_file.load(std::memory_order_acquire); }

// The hooks are bound: hook `index` is called `symbol`, and the driver has it or not.
void DoctorNotesHook(int index, const char* symbol, bool in_driver);
// The code at `caller` has looked `name` up. `index`: of the hook that it got instead; negative: it got the driver's
// answer, and `hooked_base` says whether `name` is one that hotpack hooks.
void DoctorNotesLookUp(const char* name, const void* caller, int index, bool hooked_base);
// A call of hook `index` was handed on.
inline void DoctorNotesCall(int index) {
  DoctorFile* file = Doctor();
  if (file != nullptr) [[unlikely]]
    file->hooks[index].handed_on.fetch_add(1, std::memory_order_relaxed);
}
// The driver has been found: what is loaded now?
void DoctorNotesDriver();

}  // namespace hotpack
