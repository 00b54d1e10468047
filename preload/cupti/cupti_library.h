// The functions of CUPTI that the collector calls, found at run time: nothing here links to libcupti.
//
// Relies only on NVIDIA's headers and documentation (CUPTI, "Activity API", "Callback API", "Dynamic Attach and
// Detach"). Records are read by the structures of CUDA 12; those of CUDA 13 begin with the same members.
#pragma once

#include <cupti.h>

namespace hotpack::cupti {

// X(function): without one of these the library cannot be used.
#define HOTPACK_CUPTI_FUNCTIONS(X)  \
  X(cuptiGetVersion)                \
  X(cuptiGetResultString)           \
  X(cuptiGetTimestamp)              \
  X(cuptiSubscribe)                 \
  X(cuptiUnsubscribe)               \
  X(cuptiGetCallbackState)          \
  X(cuptiEnableCallback)            \
  X(cuptiActivityRegisterCallbacks) \
  X(cuptiActivityEnable)            \
  X(cuptiActivityDisable)           \
  X(cuptiActivityFlushAll)          \
  X(cuptiActivityGetNextRecord)     \
  X(cuptiActivityGetNumDroppedRecords)

// The parameters of cuptiSubscribe_v2, declared here because older headers have neither.
struct SubscriberParams {
  size_t size;
  const char* name;
  char* old_name;  // of the tool that has CUPTI
  size_t old_name_size;
};

struct Library {
#define HOTPACK_CUPTI_MEMBER(function) decltype(&::function) function = nullptr;
  HOTPACK_CUPTI_FUNCTIONS(HOTPACK_CUPTI_MEMBER)
#undef HOTPACK_CUPTI_MEMBER
  CUptiResult (*cuptiSubscribe_v2)(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*,
                                   SubscriberParams*) = nullptr;  // may be null
};

// CUDA 12.0 (cupti_version.h): the first whose records are read here.
inline constexpr uint32_t kOldestVersion = 19;

// Finds the library: the loaded one, which another tool in the process would use too; else the loader's, else the
// toolkit's. Returns false with the reason in `why` (of `size` bytes). Never unloads it. Calls only cuptiGetVersion.
bool LoadLibrary(Library* library, char* why, size_t size);

}  // namespace hotpack::cupti
