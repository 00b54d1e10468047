// Driver calls of StreamOrder: events between streams, and waits on the host.
#include <sched.h>

#include <algorithm>
#include <ctime>

#include "preload/process/current_scope.h"
#include "preload/streams/order_cost.h"
#include "preload/streams/stream_order.h"

namespace hotpack {
namespace {

// Returns true if no work is left to wait for. Other failures tell nothing about the work: a capture forbids to wait,
// or the driver could not do it now.
bool IsOver(CUresult result) {
  return result == CUDA_ERROR_DEINITIALIZED || result == CUDA_ERROR_NOT_INITIALIZED ||
         result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT ||
         result == CUDA_ERROR_INVALID_HANDLE;
}

// All work of a context submitted before it is made. The context must be current.
class MomentOfContext {
 public:
  MomentOfContext(const CudaDriver& driver, CUcontext context) : driver_(driver) {
    if (driver.CtxRecordEvent == nullptr || driver.EventCreate == nullptr || driver.EventQuery == nullptr ||
        driver.EventDestroy == nullptr || driver.EventCreate(&event_, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
      return;
    }
    recorded_ = driver.CtxRecordEvent(context, event_) == CUDA_SUCCESS;
  }
  ~MomentOfContext() {
    if (event_ != nullptr) driver_.EventDestroy(event_);
  }
  MomentOfContext(const MomentOfContext&) = delete;
  MomentOfContext& operator=(const MomentOfContext&) = delete;
  explicit operator bool() const { return recorded_; }
  bool Over() const {
    const CUresult result = driver_.EventQuery(event_);
    return result == CUDA_SUCCESS || IsOver(result);
  }

 private:
  const CudaDriver& driver_;
  CUevent event_ = nullptr;
  bool recorded_ = false;
};

// Sleeps between queries: 1 us, 2, 4, ... 128, 128, ... Counts the time by the sleeps, so that the same work on the
// simulated device always takes as many queries.
class Polls {
 public:
  explicit Polls(uint64_t microseconds) : left_(microseconds) {}
  // Returns false if the time is up.
  bool Next() {
    if (left_ == 0) return false;
    const uint64_t sleep = std::min(left_, next_);
    left_ -= sleep;
    next_ = std::min<uint64_t>(2 * next_, 128);
    const timespec time{0, static_cast<long>(sleep) * 1000};
    nanosleep(&time, nullptr);
    return true;
  }

 private:
  uint64_t left_, next_ = 1;
};

bool IsDefaultBlocking(StreamKind kind) { return kind != StreamKind::kNonBlocking; }

}  // namespace

// While it lives, no capture begins. False if one is active.
class StreamOrder::NoCapture {
 public:
  explicit NoCapture(StreamOrder* order) : order_(order), ok_(order->EnterSynchronize()) {}
  ~NoCapture() {
    if (ok_) order_->LeaveSynchronize();
  }
  NoCapture(const NoCapture&) = delete;
  NoCapture& operator=(const NoCapture&) = delete;
  explicit operator bool() const { return ok_; }

 private:
  StreamOrder* const order_;
  const bool ok_;
};

// Where the program announces captures, libraries other than PyTorch do not. So all named streams are asked.
bool StreamOrder::EnterSynchronize() {
  syncing_.fetch_add(1);
  if (captures_.load() == 0 && !(ByContexts() && Driver() != nullptr && streams_.AnyCapturing(*Driver()))) return true;
  syncing_.fetch_sub(1);
  return false;
}

void StreamOrder::Settle(uint64_t tick) {
  uint64_t seen = settled_.load();
  while (seen < tick && !settled_.compare_exchange_weak(seen, tick)) {
  }
  Arenas().ForEach([tick](ContextArena* arena) { arena->engine->SettleReuse(tick); });
}

// --- events ----------------------------------------------------------------------------------------------------------

// Makes stream `to` wait for the releases on stream `from` up to `tick`. Returns false if events cannot do that now.
bool StreamOrder::Edge(uint32_t from, uint64_t tick, uint32_t to) {
  const CudaDriver* driver = Driver();
  if (driver == nullptr) return false;
  const UsedStreams::Stream source = streams_.Get(from), target = streams_.Get(to);
  if (source.gone && source.finished) return true;
  if (target.kind == StreamKind::kLegacy && AnyCapture()) return false;
  uint32_t recorded_on = from;
  CUevent event = streams_.EventAfter(from, tick);
  const uint32_t legacy = IsDefaultBlocking(source.kind) ? streams_.FindLegacy(source.context) : kAllStreams;
  if (event == nullptr && legacy != kAllStreams) {
    recorded_on = legacy;
    event = streams_.EventAfter(legacy, tick);
  }
  if (event == nullptr) {
    const NoCapture none(this);
    if (!none) return false;
    // Another thread's default stream has no handle here; a gone stream has none anywhere.
    const bool named =
        !source.gone && (source.kind != StreamKind::kPerThread || streams_.FindOwn(source.context) == from);
    recorded_on = named ? from : legacy;
    if (recorded_on == kAllStreams) return false;
    event = streams_.Record(*driver, recorded_on, tick_.load());
    streams_.NoteWanted(from);
  }
  if (event == nullptr || !streams_.Wait(*driver, to, recorded_on, event)) return false;
  streams_.NoteKnown(to, from, tick);
  return true;
}

// Makes the stream wait for all work submitted to all others so far. During a capture: for at least all releases up to
// `needed`.
bool StreamOrder::Join(uint32_t stream, uint64_t needed) {
  const CudaDriver* driver = Driver();
  if (driver == nullptr) return false;
  const NoCapture none(this);
  if (!none) return JoinDuringCapture(stream, needed);
  const uint64_t tick = tick_.load();
  UsedStreams::Stream others[UsedStreams::kCapacity];
  const size_t count = streams_.List(others);
  for (size_t i = 0; i < count; ++i) {
    const UsedStreams::Stream& other = others[i];
    const bool by_legacy = other.kind == StreamKind::kBlocking || other.kind == StreamKind::kPerThread;
    if (other.number != stream && !by_legacy && !Gather(*driver, other, stream, tick)) return false;
  }
  // The legacy stream's next operation comes after its blocking streams. A program may omit that operation and use the
  // block on a blocking stream at once, which comes after the legacy stream anyway.
  if (streams_.Get(stream).kind == StreamKind::kLegacy) {
    const CUevent own = streams_.Record(*driver, stream, tick);
    if (own == nullptr || !streams_.Wait(*driver, stream, stream, own)) return false;
  }
  streams_.NoteKnownAll(stream, tick);
  return true;
}

// Makes the hub wait for all work submitted to the stream so far.
bool StreamOrder::Gather(const CudaDriver& driver, const UsedStreams::Stream& stream, uint32_t hub, uint64_t tick) {
  if (stream.gone) {
    const CUevent last = stream.finished ? nullptr : streams_.LatestEvent(stream.number);
    return last == nullptr || streams_.Wait(driver, hub, stream.number, last);
  }
  const CUevent event = streams_.Record(driver, stream.number, tick);
  if (event == nullptr)
    return streams_.Get(stream.number).gone && Gather(driver, streams_.Get(stream.number), hub, tick);
  return streams_.Wait(driver, hub, stream.number, event);
}

// Releases before the capture have their events. There was no release since.
bool StreamOrder::JoinDuringCapture(uint32_t stream, uint64_t needed) {
  const CudaDriver* driver = Driver();
  const uint64_t tick = CaptureTick();
  if (tick < needed || streams_.Get(stream).kind == StreamKind::kLegacy) return false;
  UsedStreams::Stream others[UsedStreams::kCapacity];
  const size_t count = streams_.List(others);
  for (size_t i = 0; i < count; ++i) {
    if (others[i].number == stream || others[i].finished) continue;
    const CUevent event = streams_.LatestEvent(others[i].number);
    if (event != nullptr && !streams_.Wait(*driver, stream, others[i].number, event)) return false;
  }
  streams_.NoteKnownAll(stream, tick);
  return true;
}

// Makes all streams wait for all streams, through a legacy stream:
//
//   non-blocking   ──●──────────────○──►      ● event recorded    ○ event waited for
//   legacy         ─────○(●)○──●────────►     blocking and per-thread streams: before and after this one's work
//   other context     ──●──────────○──►
bool StreamOrder::Barrier() {
  const CudaDriver* driver = Driver();
  if (driver == nullptr) return false;
  const NoCapture none(this);
  if (!none) return false;
  const uint64_t tick = tick_.load();
  UsedStreams::Stream streams[UsedStreams::kCapacity];
  const size_t count = streams_.List(streams);
  uint32_t hub = kAllStreams;
  for (size_t i = 0; i < count && hub == kAllStreams; ++i) {
    if (streams[i].kind == StreamKind::kLegacy && !streams[i].gone) hub = streams[i].number;
  }
  if (hub == kAllStreams) return false;
  for (size_t i = 0; i < count; ++i) {
    const bool by_legacy = streams[i].kind == StreamKind::kBlocking || streams[i].kind == StreamKind::kPerThread;
    if (streams[i].number != hub && !by_legacy && !Gather(*driver, streams[i], hub, tick)) return false;
  }
  const CUevent all = streams_.Record(*driver, hub, tick);
  if (all == nullptr) return false;
  for (size_t i = 0; i < count; ++i) {
    const UsedStreams::Stream& stream = streams[i];
    if (stream.gone || stream.kind == StreamKind::kBlocking || stream.kind == StreamKind::kPerThread) continue;
    // The legacy stream waits too: its wait is what its blocking streams wait for (CUDA runtime API, "Stream
    // synchronization behavior").
    if (!streams_.Wait(*driver, stream.number, hub, all) && !streams_.Get(stream.number).gone) return false;
  }
  Settle(tick);
  streams_.Recycle(tick);
  return true;
}

// Releases up to this tick have their events, which another thread may be recording now. Must not be called within
// NoCapture: the recording thread waits for its end.
uint64_t StreamOrder::CaptureTick() const {
  while (beginning_.load()) sched_yield();
  return capture_tick_.load();
}

// Records an event on every stream that cannot record one later. Otherwise the host waits, as long as it may.
void StreamOrder::RecordAll(uint64_t tick) {
  const CudaDriver* driver = Driver();
  if (ByContexts()) {
    ContextEvents::Contexts contexts;
    const size_t contexts_count = streams_.AnyCapturing(*driver) ? 0 : context_events_.List(&contexts);
    for (size_t i = 0; i < contexts_count; ++i) context_events_.Record(*driver, contexts[i], tick);
    return;
  }
  UsedStreams::Stream streams[UsedStreams::kCapacity];
  const size_t count = streams_.List(streams);
  for (size_t i = 0; i < count; ++i) {
    const bool by_legacy = streams[i].kind == StreamKind::kBlocking || streams[i].kind == StreamKind::kPerThread;
    if (by_legacy || streams[i].gone || streams_.Record(*driver, streams[i].number, tick) != nullptr) continue;
    if (!streams_.Synchronize(*driver, streams[i].number)) return;
  }
  uint64_t seen = capture_tick_.load();
  while (seen < tick && !capture_tick_.compare_exchange_weak(seen, tick)) {
  }
}

void StreamOrder::HostWait() {
  if (host_waits_.exchange(true) || Driver() == nullptr) return;
  const NoCapture none(this);
  if (!none) return;
  const uint64_t tick = tick_.load();
  UsedStreams::Stream streams[UsedStreams::kCapacity];
  const size_t count = streams_.List(streams);
  for (size_t i = 0; i < count; ++i) {
    const UsedStreams::Stream& stream = streams[i];
    const bool pending = streams_.LastRelease(stream.number) > settled_.load();
    if (pending && !stream.gone && stream.kind != StreamKind::kPerThread)
      streams_.Record(*Driver(), stream.number, tick);
  }
}

// --- the host waits --------------------------------------------------------------------------------------------------

bool StreamOrder::SynchronizeOne(CUcontext context) {
  const CudaDriver* driver = Driver();
  if (driver == nullptr) return true;
  const NoCapture none(this);
  if (!none) return false;
  ++order_cost.host_waits;
  const bool push = context != nullptr && CurrentContext(*driver) != context;
  if (push) {
    const CUresult pushed = driver->CtxPushCurrent(context);
    if (pushed != CUDA_SUCCESS) return IsOver(pushed);
  }
  const CUresult result = driver->CtxSynchronize();
  if (push) PopContext(*driver);
  return result == CUDA_SUCCESS || IsOver(result);
}

// Work that uses a block may be in any context that shares its device or reaches it as a peer.
bool StreamOrder::SynchronizeContexts() {
  const NoCapture none(this);  // also, no context of the list ends meanwhile
  if (!none) return false;
  bool done = true;
  for (size_t i = 0;; ++i) {
    CUcontext context = nullptr;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (contexts_ == nullptr || i >= contexts_->size()) break;
      context = (*contexts_)[i];
    }
    done = SynchronizeOne(context) && done;
  }
  return done;
}

bool StreamOrder::Synchronize(CUcontext context) {
  if (ByContexts()) FindContexts();
  bool done = SynchronizeOne(context);
  bool others = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    others = contexts_ != nullptr && contexts_->size() > 1;
  }
  if (others) done = SynchronizeContexts() && done;
  return done;
}

// Returns the context and all others seen.
std::vector<CUcontext> StreamOrder::ContextsWith(CUcontext context) {
  std::vector<CUcontext> contexts = {context};
  const std::lock_guard<std::mutex> lock(mutex_);
  if (contexts_ == nullptr || contexts_->size() < 2) return contexts;
  for (const CUcontext other : *contexts_) {
    if (other != context) contexts.push_back(other);
  }
  return contexts;
}

DeviceWait StreamOrder::SynchronizeWithin(CUcontext context, uint64_t microseconds) {
  const CudaDriver* driver = Driver();
  if (driver == nullptr) return DeviceWait::kDone;
  if (ByContexts()) FindContexts();
  const NoCapture none(this);  // also, no context of the list ends meanwhile
  if (!none) return DeviceWait::kNotNow;
  ++order_cost.host_waits;
  Polls polls(microseconds);
  for (const CUcontext each : ContextsWith(context)) {
    const CurrentScope scope(*driver, each);
    const MomentOfContext moment(*driver, each);
    if (!scope || !moment) return Synchronize(context) ? DeviceWait::kDone : DeviceWait::kNotNow;
    while (!moment.Over()) {
      if (!polls.Next()) return DeviceWait::kUnfinished;
    }
  }
  return DeviceWait::kDone;
}

bool StreamOrder::SynchronizeStream(CUstream stream) {
  const CudaDriver* driver = Driver();
  if (driver == nullptr) return true;
  const NoCapture none(this);
  if (!none) return false;
  ++order_cost.host_waits;
  const CUresult result = driver->StreamSynchronize(stream);
  return result == CUDA_SUCCESS || IsOver(result);
}

// During a capture: waits for the events recorded before it. They are no part of it, and in relaxed mode the driver
// lets this thread wait for them.
bool StreamOrder::WaitOnHost() {
  const CudaDriver* driver = Driver();
  if (driver == nullptr) return false;
  const uint64_t tick = CaptureTick();
  const RelaxedCaptureMode relaxed(*driver);
  UsedStreams::Stream streams[UsedStreams::kCapacity];
  const size_t count = streams_.List(streams);
  bool done = true;
  for (size_t i = 0; i < count && done; ++i) done = streams_.WaitOnHost(*driver, streams[i].number);
  if (done) Settle(tick);
  return done;
}

}  // namespace hotpack
