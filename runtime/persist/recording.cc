#include "runtime/persist/recording.h"

#include <algorithm>
#include <atomic>

#include "profiler/trace_format.h"
#include "runtime/base/request_timer.h"

namespace hotpack {
namespace {

constexpr size_t kMaxNames = 1 << 16;  // stored; a program may use a new name for every range

constinit std::atomic<uint32_t> threads{0};
// Initial-exec: see heap_count.cc.
__attribute__((tls_model("initial-exec"))) constinit thread_local uint32_t thread_ordinal = 0;  // + 1; 0: none yet

}  // namespace

uint16_t ThreadOrdinal() {
  if (thread_ordinal == 0) {
    const uint32_t next = threads.fetch_add(1, std::memory_order_relaxed);
    thread_ordinal = std::min<uint32_t>(next, UINT16_MAX) + 1;
  }
  return static_cast<uint16_t>(thread_ordinal - 1);
}

uint64_t Recording::SinceStart(uint64_t steady_ns) {
  if (steady_ns == 0) return 0;
  if (start_ns_ == 0) start_ns_ = steady_ns;
  return steady_ns > start_ns_ ? steady_ns - start_ns_ : 0;
}

// A request does not fail because this lacks host memory: then no launch names the block.
void Recording::Index(DeviceAddress address, const Live& block) try {
  live_.insert_or_assign(address, block);
} catch (...) {
}

void Recording::Add(EventKind kind, uint64_t id, uint64_t bytes, uint32_t stream, bool async, DeviceAddress address) {
  if (!on()) [[likely]]
    return;
  if (index_blocks_ && kind == EventKind::kAllocate) Index(address, {bytes, id, 0});
  if (index_blocks_ && kind == EventKind::kRelease) live_.erase(address);
  Event event;
  event.kind = kind;
  event.id = id;
  event.bytes = bytes;
  event.stream = stream;
  event.thread = ThreadOrdinal();
  event.flags = async ? kEventAsync : 0;
  event.time_ns = SinceStart(static_cast<uint64_t>(RequestTimer::Now()));
  writer()->Append(event);
}

// A name is written only once while it is stored.
NameOrdinal Recording::Name(std::string_view name) {
  if (name.empty()) return kNoName;
  name_.assign(CutName(name));
  if (const auto known = names_.find(name_); known != names_.end()) return known->second;
  if (names_.size() >= kMaxNames) names_.clear();
  const NameOrdinal ordinal = writer()->AppendName(name_);  // an exception leaves no partial state
  names_.emplace(name_, ordinal);
  return ordinal;
}

uint64_t Recording::AddLaunch(const LaunchNote& note, bool only_if_named) {
  if (!on()) return kNoLaunch;
  const uint64_t ordinal = writer()->LaunchCount();
  blocks_.clear();
  for (size_t i = 0; i < note.word_count && blocks_.size() < trace_format::kMaxLaunchBlocks; ++i) {
    auto block = live_.upper_bound(note.words[i]);
    if (block == live_.begin()) continue;
    --block;
    if (note.words[i] - block->first >= block->second.bytes || block->second.named_by == ordinal + 1) continue;
    block->second.named_by = ordinal + 1;
    blocks_.push_back(block->second.id);
  }
  if (only_if_named && blocks_.empty()) return kNoLaunch;
  Launch launch;
  launch.time_ns = SinceStart(static_cast<uint64_t>(RequestTimer::Now()));
  launch.blocks = static_cast<uint32_t>(blocks_.size());
  launch.name = Name(note.name);
  launch.stream = note.stream;
  launch.thread = ThreadOrdinal();
  return writer()->Append(launch, blocks_.data()) ? ordinal : kNoLaunch;
}

void Recording::AddWork(uint64_t launch, std::string_view name, uint64_t start_ns, uint64_t end_ns) {
  if (!on() || launch >= writer()->LaunchCount()) return;
  LaunchWork work;
  work.launch = launch;
  work.start_ns = SinceStart(start_ns);
  work.end_ns = std::max(work.start_ns, SinceStart(end_ns));
  work.name = Name(name);
  writer()->Append(work);
}

void Recording::AddRange(RangeKind kind, uint64_t id, std::string_view name, uint64_t time_ns, uint16_t thread) {
  if (!on()) return;
  RangeEdge edge;
  edge.kind = kind;
  edge.id = id;
  edge.name = Name(name);
  edge.time_ns = SinceStart(time_ns);
  edge.thread = thread;
  writer()->Append(edge);
}

void Recording::AddMemory(const DriverMemory& memory, std::string_view name) {
  if (!on()) return;
  DriverMemory note = memory;
  note.time_ns = SinceStart(memory.time_ns);
  note.name = Name(name);
  note.thread = ThreadOrdinal();
  writer()->Append(note);
}

void Recording::Close() {
  if (on()) writer()->Close();
  writer_ = nullptr;
  live_.clear();
}

}  // namespace hotpack
