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

// Counts the calls in progress.
class Counted {
 public:
  explicit Counted(std::atomic<int>* count) : count_(count) { count_->fetch_add(1); }
  ~Counted() { count_->fetch_sub(1); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<int>* const count_;
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
  if ((source.gone && source.finished) || streams_.Finished(from, tick)) return true;
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

// Makes the stream wait for all work on all others that was submitted before the releases up to `needed`. The events of
// those releases are best, because an event that is recorded now stands for later work, too.
bool StreamOrder::Join(uint32_t stream, uint64_t needed) {
  const CudaDriver* driver = Driver();
  if (driver == nullptr) return false;
  const NoCapture none(this);
  if (!none) return JoinDuringCapture(stream, needed);
  const uint64_t tick = tick_.load();
  uint64_t covered = tick;
  UsedStreams::Stream others[UsedStreams::kCapacity];
  const size_t count = streams_.List(others);
  for (size_t i = 0; i < count; ++i) {
    const UsedStreams::Stream& other = others[i];
    const bool by_legacy = other.kind == StreamKind::kBlocking || other.kind == StreamKind::kPerThread;
    if (other.number == stream || by_legacy) continue;
    uint64_t stands_for = tick;
    const CUevent earlier = other.gone ? nullptr : streams_.EventAfter(other.number, needed, &stands_for);
    if (streams_.Finished(other.number, needed)) {
      covered = needed;
    } else if (earlier != nullptr && streams_.Wait(*driver, stream, other.number, earlier)) {
      covered = std::min(covered, stands_for);
    } else if (!Gather(*driver, other, stream, tick)) {
      return false;
    }
  }
  // The legacy stream's next operation comes after its blocking streams. A program may omit that operation and use the
  // block on a blocking stream at once, which comes after the legacy stream anyway.
  if (streams_.Get(stream).kind == StreamKind::kLegacy) {
    const CUevent own = streams_.Record(*driver, stream, tick);
    if (own == nullptr || !streams_.Wait(*driver, stream, stream, own)) return false;
  }
  streams_.NoteKnownAll(stream, covered);
  return true;
}

// Makes a stream's first work come after all that was settled before, by the floor. A barrier that is being made may
// have missed the stream: then it waits for all.
bool StreamOrder::ComeAfterFloor(uint32_t stream) {
  const bool barrier = barriers_.load() != 0;
  Floor floor;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    floor = floor_;
  }
  if (!barrier && floor.stream != kAllStreams && floor.stream != stream && Edge(floor.stream, floor.tick, stream))
    return true;
  return Join(stream, barrier ? tick_.load() : std::max(floor.tick, settled_.load()));
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
  const Counted making(&barriers_);  // before the list: a stream that is not on it sees this
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
  // Only events that are recorded from here on have this tick or a later one. They all stand for the barrier.
  const uint64_t floor = tick_.fetch_add(1) + 1;
  const CUevent all = streams_.Record(*driver, hub, floor);
  if (all == nullptr) return false;
  for (size_t i = 0; i < count; ++i) {
    const UsedStreams::Stream& stream = streams[i];
    if (stream.gone || stream.kind == StreamKind::kBlocking || stream.kind == StreamKind::kPerThread) continue;
    // The legacy stream waits too: its wait is what its blocking streams wait for (CUDA runtime API, "Stream
    // synchronization behavior").
    if (!streams_.Wait(*driver, stream.number, hub, all) && !streams_.Get(stream.number).gone) return false;
  }
  RaiseFloor(hub, floor);
  Settle(tick);
  streams_.Recycle(tick);
  return true;
}

// All streams that are used later come after events of this stream with at least this tick.
void StreamOrder::RaiseFloor(uint32_t stream, uint64_t tick) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (tick > floor_.tick) floor_ = {stream, tick};
}

// Records an event on each used stream, for the releases so far. An event on the legacy stream would order its blocking
// streams, so none is recorded where there are such.
void StreamOrder::RecordUsed() {
  if (__atomic_load_n(&hotpack_per_thread_stream_used, __ATOMIC_RELAXED) != 0) return;
  const CudaDriver* driver = Driver();
  const NoCapture none(this);
  if (driver == nullptr || !none) return;
  const uint64_t tick = tick_.load();
  UsedStreams::Stream streams[UsedStreams::kCapacity];
  const size_t count = streams_.List(streams);
  for (size_t i = 0; i < count; ++i) {
    if (!streams[i].gone && streams[i].kind == StreamKind::kBlocking) return;
  }
  for (size_t i = 0; i < count; ++i) {
    if (!streams[i].gone) streams_.Record(*driver, streams[i].number, tick);
  }
}

// Records events for a pooled release whose memory may go to another stream: it went there before, or best fit will
// choose (AskedOffPlan). The cost of a context's event is not known, so these take a fifth of the time at most.
void StreamOrder::RecordAtRelease(Engine* engine, DeviceAddress address) {
  const bool crossing = crossing_.Has(PooledBlock(address));
  if ((!crossing && !AskedOffPlan(engine)) || AnyCapture()) return;
  const int64_t start = RequestTimer::Now();
  if (!crossing && start < next_record_.load(std::memory_order_relaxed)) return;
  const OrderCostScope cost(engine, 0);
  if (!ByContexts()) {
    RecordUsed();
    return;
  }
  RecordContexts(tick_.load());
  const int64_t end = RequestTimer::Now();
  next_record_.store(end + 4 * (end - start), std::memory_order_relaxed);
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
