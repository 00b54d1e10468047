// Work on a stream: done at once, or kept as a graph node while the stream is capturing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "simgpu/driver/state.h"

namespace simgpu {

inline constexpr uint64_t kAnyBlock = ~uint64_t{0};  // see Checker::UsePointer, given_before

using RunWork = std::function<CUresult(Driver& d, Epoch op, uint64_t given_before)>;

struct GraphNode {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  RunWork run;              // null: nothing to do
  CUhostFn host = nullptr;  // runs without the lock
  void* host_data = nullptr;
  Graph* graph = nullptr;
  Graph* child = nullptr;             // a child graph, part of this one
  std::optional<CUDA_MEMCPY3D> copy;  // of a copy: its parameters, and the context that it runs in
  CUcontext context = nullptr;
  uint64_t given_before = 0;      // not 0: replaces the graph's, because the node has been changed since
  std::vector<GraphNode*> after;  // nodes that run earlier; of captured nodes all older ones, without a list
};

// An object that a program gave graphs to keep, with the number of references.
struct UserObject {
  void* data = nullptr;
  CUhostFn destroy = nullptr;
  uint64_t references = 0;
};
using HeldObjects = std::map<UserObject*, uint64_t>;

// Objects without references. Their functions run when this is destroyed, which must be after the driver's lock was
// released. So declare it before SIMGPU_ENTER.
class EndedObjects {
 public:
  EndedObjects() = default;
  ~EndedObjects() {
    for (const UserObject& object : objects_) object.destroy(object.data);
  }
  EndedObjects(const EndedObjects&) = delete;
  EndedObjects& operator=(const EndedObjects&) = delete;
  void Add(const UserObject& object) { objects_.push_back(object); }

 private:
  std::vector<UserObject> objects_;
};

// Removes `count` references from the object.
void Release(Driver& d, UserObject* object, uint64_t count, EndedObjects* ended);
void Release(Driver& d, const HeldObjects& held, EndedObjects* ended);

// Memory allocated during a capture: ends with the graph and its copies.
struct GraphMemory {
  std::set<uint64_t> bases;
};

// Nodes run in the order of their addition, except that a node's stated dependencies run first. So missing orders
// inside a graph are not detected.
struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;
  std::vector<std::unique_ptr<Graph>> children;
  std::shared_ptr<GraphMemory> memory = std::make_shared<GraphMemory>();
  uint64_t given_before = kAnyBlock;  // blocks given since the capture ended are not meant
  HeldObjects objects;
};

struct GraphExec {
  struct Step {
    const GraphNode* node = nullptr;  // the original node; may be gone
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    RunWork run;
    CUhostFn host = nullptr;
    void* host_data = nullptr;
    uint64_t given_before = 0;  // as in GraphNode
    std::optional<CUDA_MEMCPY3D> copy;
  };
  std::vector<Step> steps;
  std::shared_ptr<GraphMemory> memory;
  uint64_t given_before = kAnyBlock;
  uint64_t flags = 0;
  HeldObjects objects;
};

struct Capture {
  Context* context = nullptr;
  Stream* origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  uint64_t thread = 0;
  uint64_t id = 0;
  bool valid = true;
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
};

uint64_t ThreadNumber();  // of the calling thread, from 1

// Frees the memory if nothing else holds it.
void FreeGraphMemory(Driver& d, std::shared_ptr<GraphMemory> memory);

GraphNode* AddNode(Graph* graph, CUgraphNodeType type, RunWork run);

// Return null if there is none. Both find child graphs, which belong to their parents. `Captured` also finds a graph
// that is still being captured.
Graph* FindGraph(Driver& d, CUgraph handle);
Graph* FindGraphOrCaptured(Driver& d, CUgraph handle);
GraphExec* FindExec(Driver& d, CUgraphExec handle);

// Checks the dependencies of a new node of `graph`.
bool ValidDependencies(const Graph& graph, const CUgraphNode* nodes, size_t count);
// Returns a node placed in the graph. Call with valid dependencies.
CUgraphNode Placed(GraphNode* node, const CUgraphNode* dependencies, size_t count);

// Returns a copy of the nodes, with their children and dependencies.
std::unique_ptr<Graph> CopyGraph(const Graph& from);

// Appends the steps of an executable in order; children in their place.
void AddSteps(const Graph& graph, std::vector<GraphExec::Step>* steps);

// Batches of copies are not captured. The capture goes on without them (simgpu/README.md names the source).
inline bool RefusesBatches(const Driver& d, const Stream& stream) {
  return stream.capture != nullptr && d.capture_rule != CaptureRule::kLenient;
}

// Runs `run(d, op, given_before)` now, or keeps a copy of it for the graph. `run` must own its data.
template <typename Run>
CUresult Submit(Driver& d, Stream* stream, CUgraphNodeType type, Run&& run) {
  if (stream->capture == nullptr) return run(d, d.order.Submit(stream->order), kAnyBlock);
  if (!stream->capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  AddNode(stream->capture->graph.get(), type, std::forward<Run>(run));
  return CUDA_SUCCESS;
}

}  // namespace simgpu
