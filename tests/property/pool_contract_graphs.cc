// Captures: announced ones, as by torch.cuda.graph, and raw ones, of which the allocator does not know.
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "tests/property/pool_contract_player.h"

namespace property {

void ContractPlayer::BeginCapture(const Op& op) {
  const int stream = current_[op.role];
  const Role& role = drawn_.settings.roles[op.role];
  const bool announced = drawn_.settings.announced && (!drawn_.settings.raw || op.hint % 2 == 0);
  // Without hooks, a capture on a non-blocking stream that the allocator does not know is not visible
  // (docs/correctness.md, Pooled releases, 9).
  const char* preload = getenv("LD_PRELOAD");
  const bool hooked = preload != nullptr && strstr(preload, "libhotpack_preload") != nullptr;
  // Nor one that another thread begins in the middle of a call.
  const bool seen = announced || hooked || ((!role.non_blocking || streams_[stream].told_of) && !drawn_.settings.calm);
  if (capture_ != nullptr || role.legacy || graphs_.size() >= 2 || (announced && !role.named) || !seen) {
    ++counts_.skipped;
    return;
  }
  // torch.cuda.graph begins with both.
  if (announced && !drawn_.settings.calm && (op.hint >> 1) % 2 == 0) {
    SyncDevice(role.device);
    allocator_->EmptyCache();
  }
  auto capture = std::make_unique<Capture>();
  capture->stream = stream;
  capture->thread = thread_;
  capture->graph.device = role.device;
  capture->graph.announced = announced;
  static std::atomic<unsigned long long> pools{0};
  capture->graph.id = {++pools, 0};
  // At a request PyTorch's allocator queries whether the recorded work of released blocks has ended. A capture forbids
  // such a query to its own thread unless it is relaxed. During announced captures it makes no such call.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if ((announced || !drawn_.settings.tells) && (op.hint >> 2) % 2 == 0) mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  if (announced && (op.hint >> 3) % 2 == 0) mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  Enter(role.device);
  if (announced) allocator_->BeginPool(role.device, capture->graph.id, streams_[stream].handle);
  if (!Ok(cuStreamBeginCapture(streams_[stream].handle, mode), "cuStreamBeginCapture")) return;
  ++counts_.captures;
  capture_ = std::move(capture);
}

// No stream but the one that the program has chosen takes part, and its capture is well.
void ContractPlayer::JudgeCaptures() {
  for (int s = 0; s < static_cast<int>(streams_.size()); ++s) {
    const Stream& stream = streams_[s];
    if (!stream.alive || stream.handle == nullptr) continue;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const bool mine = capture_ != nullptr && capture_->stream == s;
    Enter(stream.device);
    if (!Ok(cuStreamIsCapturing(stream.handle, &status), "cuStreamIsCapturing")) return;
    if (!mine && status != CU_STREAM_CAPTURE_STATUS_NONE) return Fail("a stream was drawn into a capture", "");
    if (mine && status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return Fail("a capture was invalidated", "");
  }
}

void ContractPlayer::EndCapture() {
  if (capture_ == nullptr) {
    ++counts_.skipped;
    return;
  }
  Graph graph = std::move(capture_->graph);
  const size_t nodes = capture_->nodes;
  const int stream = capture_->stream;
  Enter(graph.device);
  const bool ended = Ok(cuStreamEndCapture(streams_[stream].handle, &graph.graph), "cuStreamEndCapture");
  capture_.reset();
  if (graph.announced) allocator_->EndPool(graph.device, graph.id);
  if (!ended) return;
  size_t count = 0;
  if (!Ok(cuGraphGetNodes(graph.graph, nullptr, &count), "cuGraphGetNodes")) return;
  if (count != nodes) return Fail("a graph has nodes that are not the program's", std::to_string(count));
  if (!Ok(cuGraphInstantiateWithFlags(&graph.exec, graph.graph, 0), "cuGraphInstantiate")) return;
  graphs_.push_back(std::move(graph));
}

// A launch uses all that the graph names, and comes after the one before.
void ContractPlayer::Launch(const Op& op) {
  const int stream = current_[op.role];
  if (graphs_.empty() || !Works(stream)) {
    ++counts_.skipped;
    return;
  }
  Graph& graph = graphs_.back();
  bool possible = graph.device == streams_[stream].device && Order(stream, graph.last, {.next = true}, op.hint);
  for (const Named& named : graph.names) {
    const Block& block = blocks_[named.slot];
    const bool there = block.pointer != nullptr && block.serial == named.serial;
    if (named.pool && !there) continue;
    possible = possible && there && OrderUse(block, stream, op.hint);
  }
  if (!possible) {
    ++counts_.skipped;
    return;
  }
  Enter(graph.device);
  const uint32_t tick = order_.Submit(stream);
  if (!Ok(cuGraphLaunch(graph.exec, streams_[stream].handle), "cuGraphLaunch")) return;
  graph.last = {};
  graph.last[stream] = tick;
  ++counts_.launches;
  for (const Named& named : graph.names) {
    Block& block = blocks_[named.slot];
    if (block.pointer != nullptr && block.serial == named.serial) block.uses[stream] = tick;
  }
}

void ContractPlayer::DropGraph() {
  if (graphs_.empty()) {
    ++counts_.skipped;
    return;
  }
  const Graph graph = graphs_.back();
  graphs_.pop_back();
  Enter(graph.device);
  Ok(cuGraphExecDestroy(graph.exec), "cuGraphExecDestroy");
  Ok(cuGraphDestroy(graph.graph), "cuGraphDestroy");
  if (graph.announced) allocator_->ReleasePool(graph.device, graph.id);
}

}  // namespace property
