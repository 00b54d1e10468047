// Taking CUPTI, and detecting that another tool took it.
#include <cstdlib>
#include <cstring>

#include "preload/cupti/collector.h"
#include "preload/cupti/submissions.h"

namespace hotpack::cupti {
namespace {

constexpr char kNot[] = "kernel times are not recorded: ";

// Returns the name of a tool that will come, or that subscribing does not show. The driver loads the tool named by the
// first variable; Nsight Systems sets the second for its target.
const char* ToolToCome() {
  for (const char* variable : {"CUDA_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID"}) {
    const char* value = getenv(variable);
    if (value != nullptr && value[0] != '\0') return variable;
  }
  return nullptr;
}

Collector* collector_of_callbacks = nullptr;

void CUPTIAPI OnCall(void*, CUpti_CallbackDomain domain, CUpti_CallbackId call, const void* data) {
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
  collector_of_callbacks->Submitted(call, *static_cast<const CUpti_CallbackData*>(data));
}
void CUPTIAPI OnRequest(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  collector_of_callbacks->BufferRequested(buffer, bytes, most_records);
}
void CUPTIAPI OnCompleted(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  collector_of_callbacks->BufferCompleted(buffer, valid_bytes);
}

}  // namespace

const char* Collector::NameOf(CUptiResult result) {
  const char* name = nullptr;
  return library_.cuptiGetResultString(result, &name) == CUPTI_SUCCESS && name != nullptr ? name : "an unknown error";
}

bool Collector::Attach() {
  if (const char* variable = ToolToCome()) {
    Say("%sanother tool is given by %s", kNot, variable);
    return false;
  }
  char why[200];
  if (!LoadLibrary(&library_, why, sizeof(why))) {
    Say("%s%s", kNot, why);
    return false;
  }
  collector_of_callbacks = this;
  if (!Subscribe()) return false;
  clock_.Measure(library_, *host_);
  if (Enable()) return true;
  Withdraw();
  return false;
}

// CUPTI usually allows one subscriber. A tool that has it profiles the same program and takes precedence.
bool Collector::Subscribe() {
  char other[128] = "";
  CUptiResult result;
  if (library_.cuptiSubscribe_v2 != nullptr) {
    SubscriberParams parameters = {sizeof(SubscriberParams), "hotpack", other, sizeof(other)};
    result = library_.cuptiSubscribe_v2(&subscriber_, OnCall, nullptr, &parameters);
  } else {
    result = library_.cuptiSubscribe(&subscriber_, OnCall, nullptr);
  }
  if (result == CUPTI_SUCCESS) return true;
  other[sizeof(other) - 1] = '\0';
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED || result == CUPTI_ERROR_MAX_LIMIT_REACHED) {
    Say("%sCUPTI is taken by %s", kNot, other[0] != '\0' ? other : "another tool");
  } else {
    Say("%sCUPTI cannot be used here (%s)", kNot, NameOf(result));
  }
  return false;
}

// Skips kinds and functions that this version or device lacks, except kernels.
bool Collector::Enable() {
  CUptiResult result = library_.cuptiActivityRegisterCallbacks(OnRequest, OnCompleted);
  for (const CUpti_ActivityKind kind : kKinds) {
    if (result != CUPTI_SUCCESS) break;
    const CUptiResult enabled = library_.cuptiActivityEnable(kind);
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) result = enabled;
  }
  noting_.store(true, std::memory_order_release);
  for (const CUpti_CallbackId call : kSubmissions) {
    if (result != CUPTI_SUCCESS) break;
    const CUptiResult enabled = library_.cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, call);
    if (call == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel) result = enabled;
  }
  if (result == CUPTI_SUCCESS) return true;
  noting_.store(false, std::memory_order_release);
  Say("%sCUPTI cannot be used here (%s)", kNot, NameOf(result));
  return false;
}

// Returns whether another tool has the subscription, or has ended all of CUPTI (cuptiFinalize). The enabled activities
// then belong to that tool: nothing is disabled, flushed or released.
bool Collector::Lost(bool watching) {
  uint32_t enabled = 0;
  const CUptiResult result = library_.cuptiGetCallbackState(&enabled, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API,
                                                            CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  if (result == CUPTI_SUCCESS && (enabled != 0 || !watching)) return false;
  noting_.store(false, std::memory_order_release);
  Say("kernel times are recorded no further: another tool has taken CUPTI (%s)",
      result == CUPTI_SUCCESS ? "launches are not watched any more" : NameOf(result));
  return true;
}

}  // namespace hotpack::cupti
