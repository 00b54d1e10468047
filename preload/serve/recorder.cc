#include "preload/serve/recorder.h"

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "packer/block_unit.h"
#include "preload/process/no_destructor.h"
#include "preload/serve/arena_factory.h"
#include "preload/streams/stream_order.h"
#include "profiler/trace_writer.h"
#include "runtime/base/request_timer.h"
#include "runtime/persist/recording.h"
#include "runtime/process/mark_listener.h"

namespace hotpack {

constinit thread_local bool request_is_recorded = false;

namespace {

// The recording of one context.
struct ContextRecording {
  TraceWriter* trace = nullptr;  // never freed; null: it could not be made, or it is closed
  StatsSlot* slot = nullptr;     // for `hotpack record`; may be null
  uint64_t next_id = 0;
  uint64_t live = 0;
  uint64_t start_ns = 0;
};

struct Block {
  CUcontext context;
  uint64_t id;
  uint64_t bytes;
};

struct Request {
  CUcontext context;
  uint64_t bytes;
  CUstream stream;
};

struct Recordings {
  std::mutex mutex;  // guards the members below; never held across a driver call
  std::unordered_map<CUcontext, ContextRecording> contexts;
  std::unordered_map<CUdeviceptr, Block> blocks;
};

constinit NoDestructor<Recordings> recordings;
constinit __attribute__((tls_model("initial-exec"))) thread_local Request request = {};

// Called with the lock held.
void Append(ContextRecording* recording, EventKind kind, const Block& block, CUstream stream) {
  if (recording->trace == nullptr) return;
  Event event;
  event.kind = kind;
  event.thread = ThreadOrdinal();
  event.id = block.id;
  event.bytes = block.bytes;
  const bool on_request = kind == EventKind::kAllocate || kind == EventKind::kRelease;
  if (on_request && stream != kNoStream) {
    event.stream = StreamOrdinal(stream);
    event.flags = kEventAsync;
  }
  const auto now = static_cast<uint64_t>(RequestTimer::Now());
  if (recording->start_ns == 0) recording->start_ns = now;
  event.time_ns = now - recording->start_ns;
  recording->trace->Append(event);
}

// Another process may read a figure at any moment.
void Set(uint64_t* figure, uint64_t value) {
  std::atomic_ref<uint64_t>(*figure).store(value, std::memory_order_relaxed);
}

void Begin(ContextRecording* recording) {
  recording->slot = NewStatsSlot();
  recording->trace = NewTrace();
  mark_listener.store(RecordMark);
  if (marks_expected.load()) Append(recording, EventKind::kExpect, Block{}, kNoStream);
}

void Close(ContextRecording* recording) {
  if (recording->trace != nullptr) recording->trace->Close();
  recording->trace = nullptr;
}

}  // namespace

void RecordRequest(CUcontext context, uint64_t bytes, CUstream stream) noexcept {
  request = {context, bytes, stream};
  request_is_recorded = true;
}

void RecordGiven(CUresult result, CUdeviceptr address) noexcept try {
  request_is_recorded = false;
  Recordings* all = &recordings.Get();
  const std::lock_guard<std::mutex> lock(all->mutex);
  const auto [place, is_new] = all->contexts.try_emplace(request.context);
  ContextRecording* recording = &place->second;
  if (is_new) Begin(recording);
  StatsSlot* slot = recording->slot;
  if (slot != nullptr) {
    Set(&slot->stats.passed_through, slot->stats.passed_through + 1);
    Set(&slot->current.driver_calls, slot->stats.passed_through);
  }
  if (result != CUDA_SUCCESS || address == 0) return;
  const Block block = {request.context, recording->next_id++, request.bytes};
  all->blocks[address] = block;
  Append(recording, EventKind::kAllocate, block, request.stream);
  recording->live += RoundUpToUnit(block.bytes);
  if (slot == nullptr) return;
  Set(&slot->current.live, recording->live);
  if (recording->live > slot->stats.live_peak) Set(&slot->stats.live_peak, recording->live);
} catch (...) {  // out of host memory: neither the request nor its release is recorded
}

void RecordRelease(CUdeviceptr address, CUstream stream) noexcept {
  Recordings* all = recordings.Made();
  if (all == nullptr) return;
  const std::lock_guard<std::mutex> lock(all->mutex);
  const auto found = all->blocks.find(address);
  if (found == all->blocks.end()) return;
  const Block block = found->second;
  all->blocks.erase(found);
  const auto recording = all->contexts.find(block.context);
  if (recording == all->contexts.end()) return;
  recording->second.live -= RoundUpToUnit(block.bytes);
  if (recording->second.slot != nullptr) Set(&recording->second.slot->current.live, recording->second.live);
  Append(&recording->second, EventKind::kRelease, block, stream);
}

void RecordMark(EventKind kind) noexcept {
  Recordings* all = recordings.Made();
  if (all == nullptr) return;
  const std::lock_guard<std::mutex> lock(all->mutex);
  for (auto& [context, recording] : all->contexts) Append(&recording, kind, Block{}, kNoStream);
}

void EndRecording(CUcontext context) noexcept {
  Recordings* all = recordings.Made();
  if (all == nullptr) return;
  const std::lock_guard<std::mutex> lock(all->mutex);
  const auto found = all->contexts.find(context);
  if (found == all->contexts.end()) return;
  Close(&found->second);
  if (found->second.slot != nullptr) Set(&found->second.slot->current.live, 0);
  all->contexts.erase(found);
  std::erase_if(all->blocks, [context](const auto& entry) { return entry.second.context == context; });
}

// The handler of a signal that came while this thread held the lock may have called exit().
void EndRecordings() noexcept {
  constexpr int kTries = 200;
  Recordings* all = recordings.Made();
  if (all == nullptr) return;
  std::unique_lock<std::mutex> lock(all->mutex, std::defer_lock);
  for (int i = 0; i < kTries && !lock.try_lock(); ++i) usleep(1000);
  if (!lock.owns_lock()) return;
  for (auto& [context, recording] : all->contexts) Close(&recording);
}

// The parent's recordings are mapped but not the child's. A lost thread may hold their lock.
void ForgetRecordings() { recordings.RenewAfterFork(); }

}  // namespace hotpack
