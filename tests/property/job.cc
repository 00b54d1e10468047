// The parts of a job: contexts, streams, events. Its blocks and their uses are in job_blocks.cc, captures in
// job_graphs.cc.
#include "tests/property/job.h"

#include <dlfcn.h>

#include <algorithm>

#include "runtime/include/hotpack.h"
#include "tests/property/hotpack_calls.h"
#include "tests/property/small_sets.h"

namespace property {
namespace {

// One parameter of eight bytes a pointer, as nvcc's own kernels have them.
constexpr char kPtx[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry work(.param .u64 work_param_0, .param .u64 work_param_1, .param .u64 work_param_2,
                     .param .u64 work_param_3) { ret; }
)";

template <typename Function>
void Look(Function* function, const char* name) {
  *function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

const HotpackCalls& Hotpack() {
  static const HotpackCalls calls = [] {
    HotpackCalls found;
    Look(&found.step, "hotpack_step");
    Look(&found.interrupt, "hotpack_interrupt");
    Look(&found.resume, "hotpack_resume");
    Look(&found.wait_plan, "hotpack_wait_plan");
    Look(&found.malloc, "hotpack_malloc");
    Look(&found.free, "hotpack_free");
    Look(&found.get_stats, "hotpack_get_stats");
    return found;
  }();
  return calls;
}

void Counts::Add(const Counts& other) {
  static_assert(sizeof(Counts) % sizeof(uint64_t) == 0);
  auto* mine = reinterpret_cast<uint64_t*>(this);
  const auto* theirs = reinterpret_cast<const uint64_t*>(&other);
  for (size_t i = 0; i < sizeof(Counts) / sizeof(uint64_t); ++i) mine[i] += theirs[i];
}

Job::Job(const Settings& settings, Random* random)
    : settings_(settings), random_(random), current_(static_cast<size_t>(settings.workers)) {}

Job::~Job() = default;

bool Job::Ok(CUresult result) {
  if (result == CUDA_SUCCESS) return true;
  ++counts_.refused;
  if (result == CUDA_ERROR_OUT_OF_MEMORY) ++counts_.out_of_memory;
  return false;
}

// ---- contexts

bool Job::AddContext(bool primary, int device) {
  if (!UnsafeCallAllowed()) return false;  // it loads a module
  Context context;
  context.device = device;
  context.primary = primary;
  const bool made = primary ? Ok(cuDevicePrimaryCtxRetain(&context.handle, device))
                            : Ok(cuCtxCreate_v4(&context.handle, nullptr, 0, device));
  if (!made) return false;
  ++counts_.operations;
  for (const Context& other : contexts_) {  // known under one number only: its streams are the same ones
    if (other.handle != context.handle) continue;
    Ok(cuDevicePrimaryCtxRelease_v2(device));
    return false;
  }
  if (!primary) {  // it is on the stack now: off again, or the stack of a long job is full one day
    CUcontext popped = nullptr;
    Ok(cuCtxPopCurrent_v2(&popped));
  }
  current_[worker_] = nullptr;
  const int number = contexts();
  contexts_.push_back(context);
  if (!Enter(number)) return true;  // nothing will work there, and that is right
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  if (Ok(cuModuleLoadData(&module, kPtx)) && Ok(cuModuleGetFunction(&kernel, module, "work"))) {
    contexts_[number].kernel = kernel;
  }
  if (settings_.legacy_stream) {
    streams_.push_back({nullptr, number, Kind::kLegacy, kNone, true, nullptr});
  }
  for (int w = 0; settings_.per_thread_streams && w < settings_.workers; ++w) {
    streams_.push_back({CU_STREAM_PER_THREAD, number, Kind::kPerThread, w, true, nullptr});
  }
  return true;
}

int Job::SomeContext() {
  std::vector<int> alive;
  for (int c = 0; c < contexts(); ++c) {
    if (ContextAlive(c)) alive.push_back(c);
  }
  return alive.empty() ? kNone : random_->Of(alive);
}

bool Job::Enter(int context) {
  if (!ContextAlive(context)) return false;
  if (current_[worker_] == contexts_[context].handle) return true;
  if (!Ok(cuCtxSetCurrent(contexts_[context].handle))) return false;
  current_[worker_] = contexts_[context].handle;
  return true;
}

bool Job::CapturingOn(int context) const { return contexts_[context].captures > 0; }

bool Job::ContextMayWait(int context) const {
  return contexts_[context].captures == 0 && !(settings_.shares_process && settings_.captures);
}

// hotpack's figures are those of the existing contexts: a context's end removes its part.
void Job::NoteStats(int sign) {
  hotpack_stats stats = {};
  if (settings_.shares_process || Hotpack().get_stats == nullptr || Hotpack().get_stats(&stats, sizeof(stats)) != 0)
    return;
  const auto factor = static_cast<uint64_t>(sign);
  counts_.requests += factor * stats.requests;
  counts_.planned += factor * stats.planned;
  counts_.displaced += factor * stats.displaced;
  counts_.passed_through += factor * stats.passed_through;
  counts_.plans += factor * (stats.reoptimizations + (stats.steady_iteration >= 0 ? 1 : 0));
}

void Job::DestroyContext(int context) {
  Context& c = contexts_[context];
  if (c.handle == nullptr || c.captures > 0 || c.stuck || !Enter(context)) return;
  for (size_t i = graphs_.size(); i-- > 0;) {
    if (graphs_[i].context == context) DestroyGraphAt(i);
  }
  for (const int block : std::vector<int>(live_)) {
    if (blocks_[block].context == context && !Release(block, kNone, false)) return;
  }
  for (const CUevent event : c.events) Ok(cuEventDestroy_v2(event));
  c.events.clear();
  ++counts_.operations;
  NoteStats(1);
  const bool destroyed = Ok(c.primary ? cuDevicePrimaryCtxRelease_v2(c.device) : cuCtxDestroy_v2(c.handle));
  NoteStats(-1);
  if (!destroyed) return;
  for (CUcontext& current : current_) {
    if (current == c.handle) current = nullptr;
  }
  c.handle = nullptr;
  for (Stream& stream : streams_) {
    if (stream.context == context) stream.alive = false;
  }
}

// The captures in progress, as cuThreadExchangeStreamCaptureMode describes: threads are in the global mode here. Waits
// for streams and events count as unsafe: the documentation leaves it open (simgpu/README.md, SIMGPU_CAPTURES).
bool Job::UnsafeCallAllowed() const {
  return std::none_of(captures_.begin(), captures_.end(), [this](const std::unique_ptr<Capture>& capture) {
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
    return capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL || capture->worker == worker_;
  });
}

void Job::SynchronizeContext(int context) {
  if (!ContextMayWait(context) || !Enter(context)) return;
  ++counts_.operations;
  if (!Ok(cuCtxSynchronize())) return;
  for (const int number : live_) {
    Block& block = blocks_[number];
    if (block.context != context) continue;
    block.uses.clear();
    block.home = kNone;
    block.lost_use = false;
  }
}

// ---- streams

int Job::AddStream(int context) {
  if (!Enter(context)) return kNone;
  Stream stream;
  stream.context = context;
  const unsigned flags = random_->Chance(500) ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
  ++counts_.operations;
  ++counts_.streams;
  const bool made = random_->Chance(700) ? Ok(cuStreamCreate(&stream.handle, flags))
                                         : Ok(cuStreamCreateWithPriority(&stream.handle, flags, -1));
  if (!made) return kNone;
  streams_.push_back(stream);
  return static_cast<int>(streams_.size()) - 1;
}

bool Job::Usable(int number) const {
  const Stream& stream = streams_[number];
  if (!stream.alive || stream.capture != nullptr) return false;
  if (stream.kind == Kind::kPerThread && stream.worker != worker_) return false;
  return stream.kind != Kind::kLegacy || ContextMayWait(stream.context);
}

int Job::SomeStream(int context, uint64_t hint) {
  int usable[64], count = 0;
  for (int s = 0; s < static_cast<int>(streams_.size()) && count < 64; ++s) {
    if (streams_[s].context == context && Usable(s)) usable[count++] = s;
  }
  return count == 0 ? kNone : usable[hint % static_cast<uint64_t>(count)];
}

void Job::Seen(int stream) {
  for (const int number : live_) {
    Block& block = blocks_[number];
    Remove(&block.uses, stream);
    if (block.home == stream) block.home = kNone;
  }
}

void Job::SynchronizeStream(int number) {
  const Stream& stream = streams_[number];
  if (!Usable(number) || !UnsafeCallAllowed() || !Enter(stream.context)) return;
  ++counts_.operations;
  bool seen = false;
  const int way = random_->Int(4);
  if (way == 0) {
    const CUevent event = TakeEvent(stream.context);
    seen = event != nullptr && Ok(cuEventRecord(event, stream.handle)) && Ok(cuEventSynchronize(event));
    ReturnEvent(stream.context, event);
  } else if (way == 1) {
    seen = cuStreamQuery(stream.handle) == CUDA_SUCCESS;
  } else {
    seen = Ok(cuStreamSynchronize(stream.handle));
  }
  if (seen) Seen(number);
}

// The remains of a destroyed stream: blocks of cuMemAlloc may have its work pending. Other blocks are passed to another
// stream, or the program waits for the stream.
void Job::DestroyStream(int number) {
  const Stream& stream = streams_[number];
  if (stream.kind != Kind::kUser || !Usable(number) || !Enter(stream.context)) return;
  const int heir = SomeStream(stream.context, random_->Next());
  bool handed_over = false, wait = random_->Chance(300);
  for (size_t i = 0; i < live_.size() && !wait; ++i) {
    const Block& block = blocks_[live_[i]];
    const bool plain = block.how == How::kPlain || block.how == How::kPitch;
    if (block.home == number) wait = true;
    if (plain || !Contains(block.uses, number) || handed_over) continue;
    handed_over = heir != kNone && heir != number && Edge(number, heir);
    wait = !handed_over;
  }
  if (wait) {
    if (!UnsafeCallAllowed() || !Ok(cuStreamSynchronize(stream.handle))) return;
    Seen(number);
  }
  ++counts_.operations;
  if (!Ok(cuStreamDestroy_v2(stream.handle))) return;
  streams_[number].alive = false;
  for (const int b : live_) {
    Block& block = blocks_[b];
    if (!Contains(block.uses, number)) continue;
    Remove(&block.uses, number);
    if (handed_over) {
      NoteUse(b, heir);
    } else {
      block.lost_use = true;
    }
  }
}

CUevent Job::TakeEvent(int context) {
  std::vector<CUevent>& events = contexts_[context].events;
  CUevent event = nullptr;
  if (!events.empty() && random_->Chance(800)) {
    const size_t i = random_->Below(events.size());
    event = events[i];
    events[i] = events.back();
    events.pop_back();
    return event;
  }
  const unsigned flags = random_->Chance(500) ? CU_EVENT_DISABLE_TIMING : CU_EVENT_DEFAULT;
  return Enter(context) && Ok(cuEventCreate(&event, flags)) ? event : nullptr;
}

// Destroyed at once (which is right while work waits for it), or kept to be recorded again.
void Job::ReturnEvent(int context, CUevent event) {
  if (event == nullptr) return;
  if (contexts_[context].events.size() < 8 && random_->Chance(700)) {
    contexts_[context].events.push_back(event);
  } else {
    Ok(cuEventDestroy_v2(event));
  }
}

bool Job::Edge(int from, int to) {
  if (from == to) return true;
  const int context = streams_[from].context;
  if (streams_[to].context != context || !Usable(from) || !Usable(to) || !Enter(context)) return false;
  const CUevent event = TakeEvent(context);
  if (event == nullptr) return false;
  ++counts_.operations;
  ++counts_.edges;
  const bool ordered =
      Ok(cuEventRecord(event, streams_[from].handle)) && Ok(cuStreamWaitEvent(streams_[to].handle, event, 0));
  ReturnEvent(context, event);
  return ordered;
}

}  // namespace property
