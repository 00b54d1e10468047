// The functions of CUPTI that the stand-in has.
#include <cstdio>
#include <cstdlib>

#include "tests/cupti/state.h"

using namespace cupti_standin;

namespace {

CUptiResult Usable() { return The().ended ? CUPTI_ERROR_NOT_INITIALIZED : CUPTI_SUCCESS; }

CUptiResult Subscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* user,
                      CUpti_SubscriberParams* parameters) {
  std::lock_guard lock(The().mutex);
  State& state = The();
  if (handle == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  state.ended = false;  // CUPTI begins again at its next use
  if (state.subscriber != nullptr) {
    if (parameters != nullptr && parameters->oldSubscriberName != nullptr) {
      snprintf(parameters->oldSubscriberName, parameters->oldSubscriberSize, "%s", state.owner.c_str());
    }
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  state.owner = std::string("CUPTI for ") + (parameters != nullptr && parameters->subscriberName != nullptr
                                                 ? parameters->subscriberName
                                                 : "a tool without a name");
  state.subscriber = *handle = state.next_subscriber;
  state.next_subscriber =
      reinterpret_cast<CUpti_SubscriberHandle>(reinterpret_cast<uintptr_t>(state.next_subscriber) + 16);
  state.callback = callback;
  state.user = user;
  state.calls.clear();
  ++state.figures.subscribed;
  return CUPTI_SUCCESS;
}

}  // namespace

#define STANDIN_API extern "C" __attribute__((visibility("default"))) CUptiResult

// The driver's own handlers at exit end CUPTI: registered while the program runs, but before its client's handlers.
STANDIN_API cuptiGetVersion(uint32_t* version) {
  [[maybe_unused]] static const int registered = atexit([] {
    std::lock_guard lock(The().mutex);
    The().ended = true;
  });
  *version = static_cast<uint32_t>(Number("version", STANDIN_VERSION));
  return CUPTI_SUCCESS;
}

STANDIN_API cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_SUCCESS                         ? "CUPTI_SUCCESS"
          : result == CUPTI_ERROR_NOT_INITIALIZED         ? "CUPTI_ERROR_NOT_INITIALIZED"
          : result == CUPTI_ERROR_INVALID_PARAMETER       ? "CUPTI_ERROR_INVALID_PARAMETER"
          : result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
                                                          : "another CUPTI error";
  return CUPTI_SUCCESS;
}

STANDIN_API cuptiGetTimestamp(uint64_t* timestamp) {
  *timestamp = Now();
  return CUPTI_SUCCESS;
}

STANDIN_API cuptiSubscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* user) {
  return Subscribe(handle, callback, user, nullptr);
}

#ifndef STANDIN_OLD
STANDIN_API cuptiSubscribe_v2(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* user,
                              CUpti_SubscriberParams* parameters) {
  if (parameters != nullptr && parameters->structSize < CUpti_SubscriberParams_STRUCT_SIZE)
    return CUPTI_ERROR_INVALID_PARAMETER;
  return Subscribe(handle, callback, user, parameters);
}
#endif

STANDIN_API cuptiUnsubscribe(CUpti_SubscriberHandle handle) {
  std::lock_guard lock(The().mutex);
  State& state = The();
  if (Usable() != CUPTI_SUCCESS) return Usable();
  if (handle == nullptr || handle != state.subscriber) {
    if (Foreign()) ++state.figures.disturbed;
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  state.subscriber = nullptr;
  state.callback = nullptr;
  state.calls.clear();
  state.figures.calls_watched = 0;
  ++state.figures.unsubscribed;
  return CUPTI_SUCCESS;
}

STANDIN_API cuptiGetCallbackState(uint32_t* enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain,
                                  CUpti_CallbackId call) {
  std::lock_guard lock(The().mutex);
  if (Usable() != CUPTI_SUCCESS) return Usable();
  if (handle == nullptr || handle != The().subscriber) return CUPTI_ERROR_INVALID_PARAMETER;
  *enable = The().calls.count(call) != 0 ? 1 : 0;
  return CUPTI_SUCCESS;
}

STANDIN_API cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                                CUpti_CallbackId call) {
  std::lock_guard lock(The().mutex);
  State& state = The();
  if (Usable() != CUPTI_SUCCESS) return Usable();
  if (handle == nullptr || handle != state.subscriber || domain != CUPTI_CB_DOMAIN_DRIVER_API) {
    if (Foreign()) ++state.figures.disturbed;
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  if (enable != 0)
    state.calls.insert(call);
  else
    state.calls.erase(call);
  state.figures.calls_watched = state.calls.size();
  return CUPTI_SUCCESS;
}

STANDIN_API cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  std::lock_guard lock(The().mutex);
  if (Foreign()) ++The().figures.disturbed;
  The().request = request;
  The().complete = complete;
  return Usable();
}

STANDIN_API cuptiActivityEnable(CUpti_ActivityKind kind) {
  std::lock_guard lock(The().mutex);
  State& state = The();
  if (Usable() != CUPTI_SUCCESS) return Usable();
  if (Foreign()) ++state.figures.disturbed;
  if (Has("deny") && kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  state.kinds.insert(kind);
  state.figures.kinds_on = state.kinds.size();
  return CUPTI_SUCCESS;
}

STANDIN_API cuptiActivityDisable(CUpti_ActivityKind kind) {
  std::lock_guard lock(The().mutex);
  State& state = The();
  if (Usable() != CUPTI_SUCCESS) return Usable();
  if (Foreign()) ++state.figures.disturbed;
  state.kinds.erase(kind);
  state.figures.kinds_on = state.kinds.size();
  return CUPTI_SUCCESS;
}

STANDIN_API cuptiActivityFlushAll(uint32_t flag) {
  std::unique_lock lock(The().mutex);
  State& state = The();
  if (Usable() != CUPTI_SUCCESS) return Usable();
  const bool forced = (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0;
  if (Foreign()) ++state.figures.disturbed;
  ++(forced ? state.figures.forced_flushes : state.figures.flushes);
  if (!forced && state.buffer.complete_ns > Now()) return CUPTI_SUCCESS;
  const Buffer buffer = TakeBuffer();
  lock.unlock();
  // Work that is not done has no times.
  for (size_t at = 0; at < buffer.used; at += kRecordBytes) {
    auto* record = reinterpret_cast<CUpti_ActivityKernel10*>(buffer.data + at);
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && record->end > Now()) record->start = record->end = 0;
  }
  Complete(buffer);
  return CUPTI_SUCCESS;
}

STANDIN_API cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  if (buffer == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  uint8_t* next = *record == nullptr ? buffer : reinterpret_cast<uint8_t*>(*record) + kRecordBytes;
  if (next + kRecordBytes > buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return (*record)->kind == CUPTI_ACTIVITY_KIND_INVALID ? CUPTI_ERROR_INVALID_KIND : CUPTI_SUCCESS;
}

STANDIN_API cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  std::lock_guard lock(The().mutex);
  *dropped = The().dropped;
  The().dropped = 0;
  return Usable();
}

STANDIN_API cuptiFinalize() {
  std::lock_guard lock(The().mutex);
  ++The().figures.finalized;
  return CUPTI_SUCCESS;
}
