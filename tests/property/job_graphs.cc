// Captures, the graphs made of them, and their launches.
#include <algorithm>

#include "simgpu/checker.h"
#include "tests/property/job.h"

namespace property {

bool Job::BeginCapture(int number) {
  if (!settings_.captures || number == kNone || graphs_.size() >= 4 || captures_.size() >= 2) return false;
  const Stream& stream = streams_[number];
  if (stream.kind == Kind::kLegacy || !Usable(number) || !Enter(stream.context)) return false;
  auto capture = std::make_unique<Capture>();
  capture->stream = number;
  capture->context = stream.context;
  capture->worker = worker_;
  const int mode = random_->Int(settings_.shares_process ? 2 : 3);  // a global one forbids other jobs' calls
  capture->mode = mode == 0   ? CU_STREAM_CAPTURE_MODE_RELAXED
                  : mode == 1 ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                              : CU_STREAM_CAPTURE_MODE_GLOBAL;
  ++counts_.operations;
  ++counts_.captures;
  if (!Ok(cuStreamBeginCapture_v2(stream.handle, capture->mode))) return false;
  ++contexts_[capture->context].captures;
  streams_[number].capture = capture.get();
  captures_.push_back(std::move(capture));
  return true;
}

void Job::CaptureStep() {
  const auto mine = std::find_if(captures_.begin(), captures_.end(),
                                 [this](const std::unique_ptr<Capture>& c) { return c->worker == worker_; });
  if (mine == captures_.end() || !Enter((*mine)->context)) return;
  Capture& capture = **mine;
  const CUstream stream = streams_[capture.stream].handle;
  ++counts_.operations;
  if (random_->Chance(150)) {  // memory of the graph's own, from its allocation to its release
    CUdeviceptr address = 0;
    capture.has_memory = true;
    if (!Ok(cuMemAllocAsync(&address, random_->Bytes(settings_.bytes_log2), stream))) return;
    Ok(cuMemsetD8Async(address, 0, 1, stream));
    Ok(cuMemFreeAsync(address, stream));
    return;
  }
  int chosen[4], count = 0;
  for (int i = 1 + random_->Int(3); i > 0; --i) {
    const int block = SomeBlock();
    if (block == kNone || blocks_[block].context != capture.context) continue;
    chosen[count++] = block;
    capture.pinned.push_back(block);
    ++blocks_[block].pins;
  }
  if (count > 0) Submit(chosen, count, capture.stream, true);
}

void Job::Unpin(const std::vector<int>& blocks) {
  for (const int block : blocks) --blocks_[block].pins;
}

void Job::EndCapture() {
  const auto mine = std::find_if(captures_.begin(), captures_.end(),
                                 [this](const std::unique_ptr<Capture>& c) { return c->worker == worker_; });
  if (mine == captures_.end() || !Enter((*mine)->context)) return;
  Capture& capture = **mine;
  Graph graph;
  graph.context = capture.context;
  ++counts_.operations;
  const CUstream stream = streams_[capture.stream].handle;
  bool ended = false;
  for (int attempt = 0; attempt < 3 && !ended; ++attempt) {
    ended = Ok(cuStreamEndCapture(stream, &graph.graph));
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (!ended && Ok(cuStreamIsCapturing(stream, &status)) && status == CU_STREAM_CAPTURE_STATUS_NONE) break;
  }
  streams_[capture.stream].capture = nullptr;
  if (!ended) {
    // Either the capture is invalid, or it never ends. Then no call may be made that it forbids.
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    const bool over = Ok(cuStreamIsCapturing(stream, &status)) && status == CU_STREAM_CAPTURE_STATUS_NONE;
    if (!over) {
      contexts_[capture.context].stuck = true;
      streams_[capture.stream].alive = false;
    }
    if (over) --contexts_[capture.context].captures;
    Unpin(capture.pinned);
    captures_.erase(mine);
    return;
  }
  --contexts_[capture.context].captures;
  graph.pinned = std::move(capture.pinned);
  graph.has_memory = capture.has_memory;
  captures_.erase(mine);
  if (!Ok(cuGraphInstantiateWithFlags(&graph.exec, graph.graph, 0))) graph.exec = nullptr;
  graphs_.push_back(std::move(graph));
}

void Job::LaunchGraph(int stream) {
  if (graphs_.empty() || stream == kNone || !Usable(stream)) return;
  const size_t index = random_->Below(graphs_.size());
  const int context = graphs_[index].context;
  if (graphs_[index].exec == nullptr || streams_[stream].context != context || !Enter(context)) return;
  for (const int block : graphs_[index].pinned) {
    if (!Visible(block, stream)) return;
  }
  Graph& graph = graphs_[index];
  for (const int block : graph.pinned) NoteUse(block, stream);
  graph.streams.push_back(stream);
  ++counts_.operations;
  ++counts_.launches;
  Ok(cuGraphLaunch(graph.exec, streams_[stream].handle));
}

void Job::DestroyGraph() {
  if (!graphs_.empty()) DestroyGraphAt(random_->Below(graphs_.size()));
}

// A graph may be destroyed while it runs. One with memory of its own may not, so that the memory's end is in order.
void Job::DestroyGraphAt(size_t index) {
  Graph& graph = graphs_[index];
  if (!Enter(graph.context)) return;
  if (graph.has_memory && !graph.streams.empty()) {
    if (!ContextMayWait(graph.context) || !Ok(cuCtxSynchronize())) return;
    graph.streams.clear();
  }
  ++counts_.operations;
  if (graph.exec != nullptr) {
    if (!Ok(cuGraphExecDestroy(graph.exec))) return;
    graph.exec = nullptr;
  }
  if (graph.graph != nullptr) {
    if (!Ok(cuGraphDestroy(graph.graph))) return;
    graph.graph = nullptr;
  }
  Unpin(graph.pinned);
  graphs_.erase(graphs_.begin() + static_cast<std::ptrdiff_t>(index));
}

}  // namespace property
