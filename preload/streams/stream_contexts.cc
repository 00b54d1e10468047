// StreamOrder where streams are known only from the program's promise (9. in stream_order.h). Events of whole contexts
// stand for the work of unnamed and ended streams.
#include <sched.h>

#include <algorithm>
#include <vector>

#include "preload/process/current_scope.h"
#include "preload/streams/order_cost.h"
#include "preload/streams/stream_order.h"

namespace hotpack {

// --- the time of one stream ------------------------------------------------------------------------------------------

void StreamOrder::NotSimple() {
  if (left_.load()) return;
  bool expected = false;
  if (!leaving_.compare_exchange_strong(expected, true)) {
    while (!left_.load()) sched_yield();  // no request on a second stream is served before the past has its stamp
    return;
  }
  simple_.store(false);
  if (ByContexts()) StampPast();
  if (!ByContexts()) RaiseFloor(streams_.FirstLegacy(), tick_.fetch_add(1) + 1);  // events from here on cover them
  left_.store(true);
  if (ByContexts()) RecordContexts(past_tick_.load());
}

// Stamps all releases so far, which were made on the only stream and have no stamps. All other streams come after them.
void StreamOrder::StampPast() {
  const uint64_t tick = tick_.fetch_add(1) + 1;
  ContextEvents::Contexts contexts;
  const size_t count = context_events_.List(&contexts);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t legacy = streams_.FindLegacy(contexts[i]);
    if (legacy != kAllStreams) streams_.NoteKnownAll(legacy, tick);
  }
  Arenas().ForEach([tick](ContextArena* arena) { arena->engine->StampReleasesSoFar(tick); });
  past_tick_.store(tick);
}

// Once that work is done, it needs no order any more.
void StreamOrder::TrySettlePast() {
  const uint64_t past = past_tick_.load();
  const CudaDriver* driver = Driver();
  if (past == 0 || driver == nullptr || driver->EventQuery == nullptr) return;
  const RelaxedCaptureMode relaxed(*driver);
  ContextEvents::Contexts contexts;
  const size_t count = context_events_.List(&contexts);
  if (count == 0) return;  // no event, so its state is unknown
  for (size_t i = 0; i < count; ++i) {
    const ContextEvents::Recorded recorded = context_events_.After(contexts[i], past);
    if (recorded.finished) continue;
    if (recorded.event == nullptr) {
      RecordContexts(tick_.load());
      return;
    }
    CurrentScope scope(*driver, contexts[i]);
    if (!scope || driver->EventQuery(recorded.event) != CUDA_SUCCESS) return;
  }
  past_tick_.store(0);
  Settle(past);
}

// A device without requests may still have work that uses another device's blocks. Its primary context takes part as
// soon as it exists. The program's own contexts take part from the first request in them.
void StreamOrder::FindContexts() {
  const CudaDriver* driver = Driver();
  if (driver == nullptr || driver->DeviceGetCount == nullptr || driver->DevicePrimaryCtxGetState == nullptr ||
      driver->DevicePrimaryCtxRetain == nullptr) {
    return;
  }
  constexpr int kDevices = 64;
  int devices = 0;
  if (driver->DeviceGetCount(&devices) != CUDA_SUCCESS || devices < 2) return;
  for (int device = 0; device < std::min(devices, kDevices); ++device) {
    const uint64_t bit = uint64_t{1} << device;
    unsigned int flags = 0;
    int active = 0;
    if ((found_devices_.load(std::memory_order_relaxed) & bit) != 0) continue;
    if (driver->DevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active == 0) continue;
    CUcontext context = nullptr;
    if (driver->DevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) continue;
    found_devices_.fetch_or(bit);  // retained from now on: if the context ended, hotpack's events would end with it
    NoteContext(context);
  }
}

// --- events of contexts ----------------------------------------------------------------------------------------------

// Records an event on each context. Returns false if that is not possible now.
bool StreamOrder::RecordContexts(uint64_t tick) {
  const CudaDriver* driver = Driver();
  if (driver == nullptr || !EnterSynchronize()) return false;
  FindContexts();
  ContextEvents::Contexts contexts;
  const size_t count = context_events_.List(&contexts);
  bool all = true;
  for (size_t i = 0; i < count; ++i) all = context_events_.Record(*driver, contexts[i], tick).event != nullptr && all;
  LeaveSynchronize();
  return all;
}

// Makes the stream wait for all work, on any stream of any context, submitted before the releases up to `needed`.
bool StreamOrder::WaitForContexts(uint32_t stream, uint64_t needed) {
  const CudaDriver* driver = Driver();
  if (driver == nullptr) return false;
  FindContexts();
  ContextEvents::Contexts contexts;
  const size_t count = context_events_.List(&contexts);
  uint64_t covered = UINT64_MAX;
  for (size_t i = 0; i < count; ++i) {
    ContextEvents::Recorded recorded = context_events_.After(contexts[i], needed);
    if (recorded.event == nullptr && !recorded.finished) {
      if (!EnterSynchronize()) return false;
      recorded = context_events_.Record(*driver, contexts[i], tick_.load());
      LeaveSynchronize();
    }
    if (!recorded.finished && (recorded.event == nullptr || !streams_.WaitFor(*driver, stream, recorded.event)))
      return false;
    covered = std::min(covered, recorded.tick);
  }
  if (count > 0) streams_.NoteKnownAll(stream, covered);
  return count > 0;
}

// A capture is active, or the stream captures. The host may still wait for events that were recorded before.
bool StreamOrder::WaitOnHostForContexts(uint64_t needed) {
  const CudaDriver* driver = Driver();
  if (driver == nullptr || driver->EventSynchronize == nullptr) return false;
  const RelaxedCaptureMode relaxed(*driver);
  ContextEvents::Contexts contexts;
  const size_t count = context_events_.List(&contexts);
  for (size_t i = 0; i < count; ++i) {
    const ContextEvents::Recorded recorded = context_events_.After(contexts[i], needed);
    if (recorded.finished) continue;
    if (recorded.event == nullptr) return false;
    CurrentScope scope(*driver, contexts[i]);
    ++order_cost.host_waits;
    if (!scope || driver->EventSynchronize(recorded.event) != CUDA_SUCCESS) return false;
  }
  return count > 0;
}

// --- requests and uses -----------------------------------------------------------------------------------------------

bool StreamOrder::OrderByContexts(CUstream stream, uint32_t number, const ReuseAfter& after) {
  const CudaDriver* driver = Driver();
  if (driver == nullptr || number == kAllStreams) return false;
  TrySettlePast();
  const uint64_t settled = settled_.load(std::memory_order_acquire);
  uint64_t needed = after.all_tick;
  for (uint32_t i = 0; i < after.count; ++i) {
    const ReuseAfter::Point& point = after.points[i];
    if (point.stream == number || point.pooled_block == 0 || point.tick <= settled) continue;
    needed = std::max(needed, point.tick);
    crossing_.Note(point.pooled_block);
  }
  streams_.Identify(*driver, number);
  const bool capturing = AsksCapturing(stream);  // it must not wait for anything outside its graph
  if (needed > settled && !streams_.KnowsAll(number, needed) && (capturing || !WaitForContexts(number, needed)))
    return false;
  for (uint32_t i = 0; i < after.count; ++i) {
    const ReuseAfter::Point& point = after.points[i];
    if (point.stream == number || point.pooled_block != 0 || point.tick <= settled) continue;
    if (streams_.Knows(number, point.stream, point.tick)) continue;
    // Records no event now on a stream that may have ended.
    const bool by_event =
        streams_.EventAfter(point.stream, point.tick) != nullptr || !streams_.Get(point.stream).may_end;
    if (capturing || !(by_event ? Edge(point.stream, point.tick, number) : WaitForContexts(number, point.tick)))
      return false;
  }
  return true;
}

// Returns the streams that a use on this handle may mean: for a default stream, that of any context (the caller names a
// block, whose device need not be the stream's). kAllStreams: any.
std::vector<uint32_t> StreamOrder::UsersOf(CUcontext context, CUstream stream) {
  if (stream != nullptr && stream != CU_STREAM_LEGACY) {
    const CudaDriver* driver = Driver();
    const uint32_t number = NumberOf(stream, context);
    if (ByContexts() && driver != nullptr && number != kAllStreams) streams_.Identify(*driver, number);
    return {number};
  }
  if (ByContexts()) FindContexts();
  std::vector<CUcontext> contexts;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (contexts_ != nullptr) contexts = *contexts_;
  }
  std::vector<uint32_t> users;
  for (const CUcontext each : contexts) users.push_back(NumberOf(CU_STREAM_LEGACY, each));
  return users;
}

bool StreamOrder::RecordNow(uint32_t stream) {
  if (Driver() == nullptr || streams_.Get(stream).kind == StreamKind::kPerThread || !EnterSynchronize()) return false;
  const bool recorded = streams_.Record(*Driver(), stream, tick_.load()) != nullptr;
  LeaveSynchronize();
  return recorded;
}

// Returns true if the stream is capturing, announced or not. The handle must be valid now.
bool StreamOrder::AsksCapturing(CUstream stream) const {
  const CudaDriver* driver = Driver();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (driver == nullptr || driver->StreamIsCapturing == nullptr) return false;
  return driver->StreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void StreamOrder::StreamMayEnd(CUstream stream) {
  if (!ByContexts() || reinterpret_cast<uintptr_t>(stream) <= 2) return;
  FirstUse(stream);
  const uint32_t number = streams_.Find(stream);
  if (number != kAllStreams) streams_.SetMayEnd(number);
}

}  // namespace hotpack
