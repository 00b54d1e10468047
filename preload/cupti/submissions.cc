#include "preload/cupti/submissions.h"

namespace hotpack::cupti {
namespace {

constexpr bool IsPerThread(const char* function) {
  size_t length = 0;
  while (function[length] != '\0') ++length;
  return length > 5 && function[length - 5] == '_' && function[length - 4] == 'p' && function[length - 3] == 't';
}

constexpr bool StartsWith(const char* text, const char* prefix) {
  for (; *prefix != '\0'; ++text, ++prefix) {
    if (*text != *prefix) return false;
  }
  return true;
}

constexpr bool IsKernel(const char* function) { return StartsWith(function, "cuLaunch"); }

// Uses the launch collector's words (preload/hooks/launch_hooks.cc).
constexpr const char* NameOf(const char* function) {
  constexpr const char* kNames[][2] = {{"cuMemset", "memset"},          {"cuGraphLaunch", "graph"},
                                       {"cuMemcpyHtoD", "memcpy HtoD"}, {"cuMemcpyDtoH", "memcpy DtoH"},
                                       {"cuMemcpyDtoD", "memcpy DtoD"}, {"cuMemcpyPeer", "memcpy peer"}};
  for (const auto& [prefix, name] : kNames) {
    if (StartsWith(function, prefix)) return name;
  }
  return nullptr;
}
static_assert(IsPerThread("cuMemcpy_ptds") && IsPerThread("cuLaunchKernel_ptsz") && !IsPerThread("cuMemsetD8_v2"));

}  // namespace

#define HOTPACK_STREAM_STREAM(function) static_cast<const function##_params*>(parameters)->hStream
#define HOTPACK_STREAM_CONFIG(function)                                     \
  (static_cast<const function##_params*>(parameters)->config != nullptr     \
       ? static_cast<const function##_params*>(parameters)->config->hStream \
       : nullptr)
#define HOTPACK_STREAM_DEFAULT(function) nullptr

Submission SubmissionOf(CUpti_CallbackId call, const void* parameters) {
  switch (call) {
#define HOTPACK_CASE(function, where)      \
  case CUPTI_DRIVER_TRACE_CBID_##function: \
    return {HOTPACK_STREAM_##where(function), IsPerThread(#function), IsKernel(#function), NameOf(#function)};
    HOTPACK_CUPTI_SUBMISSIONS(HOTPACK_CASE)
#undef HOTPACK_CASE
    default:
      return {};
  }
}

}  // namespace hotpack::cupti
