// Notes for `hotpack doctor` (HOTPACK_DOCTOR). Without that variable each costs one pointer check. No heap, no driver
// call.
#pragma once

#include <atomic>

#include "preload/hooks/doctor_file.h"

namespace hotpack {

extern constinit std::atomic<DoctorFile*> doctor_file;  // null: HOTPACK_DOCTOR is not set

inline DoctorFile* Doctor() { return doctor_file.load(std::memory_order_acquire); }

// Notes a bound hook: hook `index` is named `symbol`; `in_driver`: the driver has the function.
void DoctorNotesHook(int index, const char* symbol, bool in_driver);
// Notes that the code at `caller` has looked `name` up. `index`: of the hook that it got; negative: it got the driver's
// answer. `hooked_base`: hotpack hooks `name`.
void DoctorNotesLookUp(const char* name, const void* caller, int index, bool hooked_base);
// Notes a call of hook `index` that passed through.
inline void DoctorNotesCall(int index) {
  DoctorFile* file = Doctor();
  if (file != nullptr) [[unlikely]]
    file->hooks[index].handed_on.fetch_add(1, std::memory_order_relaxed);
}
// Notes the driver, now found, and the libraries that are loaded now.
void DoctorNotesDriver();

}  // namespace hotpack
