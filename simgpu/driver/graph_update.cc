// Updates of executables, copies of graphs, and objects that graphs keep alive.
#include <algorithm>

#include "simgpu/driver/api.h"
#include "simgpu/driver/work.h"

namespace simgpu {
namespace {

CUgraphNode Handle(const GraphNode* node) { return reinterpret_cast<CUgraphNode>(const_cast<GraphNode*>(node)); }

// cuda.h, cuGraphExecUpdate. Pairs nodes in their running order; does not compare their dependencies.
CUgraphExecUpdateResult Compare(const GraphExec& exec, const std::vector<GraphExec::Step>& steps, CUgraphNode* wrong) {
  if (exec.steps.size() != steps.size()) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (exec.steps[i].type == steps[i].type) continue;
    *wrong = Handle(steps[i].node);
    return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  }
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult Update(CUgraphExec exec_handle, CUgraph handle, CUgraphExecUpdateResult* result, CUgraphNode* wrong) {
  SIMGPU_ENTER(cuGraphExecUpdate);
  GraphExec* exec = FindExec(d, exec_handle);
  const Graph* graph = FindGraph(d, handle);
  *result = CU_GRAPH_EXEC_UPDATE_ERROR;
  *wrong = nullptr;
  if (exec == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphExec::Step> steps;
  AddSteps(*graph, &steps);
  *result = Compare(*exec, steps, wrong);
  if (*result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].node = exec->steps[i].node;  // later calls name the nodes of the original graph
  }
  exec->steps = std::move(steps);
  if (exec->memory != graph->memory) {
    FreeGraphMemory(d, std::move(exec->memory));
    exec->memory = graph->memory;
  }
  exec->given_before = graph->given_before == kAnyBlock ? d.checker.serial() : graph->given_before;
  return CUDA_SUCCESS;
}

}  // namespace

void Release(Driver& d, UserObject* object, uint64_t count, EndedObjects* ended) {
  object->references -= count;
  if (object->references > 0) return;
  ended->Add(*object);
  d.user_objects.erase(object);
}

void Release(Driver& d, const HeldObjects& held, EndedObjects* ended) {
  for (const auto& [object, count] : held) Release(d, object, count, ended);
}

SIMGPU_API cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* wrong, CUgraphExecUpdateResult* result) {
  CUgraphExecUpdateResult code;
  CUgraphNode node;
  const CUresult status = Update(exec, graph, &code, &node);
  if (result != nullptr) *result = code;
  if (wrong != nullptr) *wrong = node;
  return status;
}
SIMGPU_API cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  CUgraphExecUpdateResultInfo found = {};
  const CUresult status = Update(exec, graph, &found.result, &found.errorNode);
  if (info != nullptr) *info = found;
  return status;
}

// The child's steps come right before the node's own. They keep the nodes' handles.
SIMGPU_API cuGraphExecChildGraphNodeSetParams(CUgraphExec handle, CUgraphNode node_handle, CUgraph child) {
  SIMGPU_ENTER(cuGraphExecChildGraphNodeSetParams);
  GraphExec* exec = FindExec(d, handle);
  const Graph* graph = FindGraph(d, child);
  const auto* node = reinterpret_cast<const GraphNode*>(node_handle);
  if (exec == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphExec::Step> steps;
  AddSteps(*graph, &steps);
  for (size_t i = steps.size(); i < exec->steps.size(); ++i) {
    if (exec->steps[i].node != node || exec->steps[i].type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    GraphExec::Step* old = &exec->steps[i - steps.size()];
    for (size_t s = 0; s < steps.size(); ++s) {
      if (old[s].type != steps[s].type) return CUDA_ERROR_INVALID_VALUE;
      steps[s].node = old[s].node;
      steps[s].given_before = d.checker.serial();
    }
    std::move(steps.begin(), steps.end(), old);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

SIMGPU_API cuGraphClone(CUgraph* result, CUgraph handle) {
  SIMGPU_ENTER(cuGraphClone);
  const Graph* graph = FindGraph(d, handle);
  if (result == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::unique_ptr<Graph> copy = CopyGraph(*graph);
  copy->memory = graph->memory;
  copy->given_before = graph->given_before;
  copy->objects = graph->objects;
  for (const auto& [object, count] : copy->objects) object->references += count;
  *result = reinterpret_cast<CUgraph>(copy.get());
  d.graphs.emplace(copy.get(), std::move(copy));
  return CUDA_SUCCESS;
}

static UserObject* Find(Driver& d, CUuserObject handle) {
  auto it = d.user_objects.find(reinterpret_cast<UserObject*>(handle));
  return it == d.user_objects.end() ? nullptr : it->second.get();
}

SIMGPU_API cuUserObjectCreate(CUuserObject* result, void* data, CUhostFn destroy, unsigned references, unsigned flags) {
  SIMGPU_ENTER(cuUserObjectCreate);
  if (result == nullptr || destroy == nullptr || references == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto object = std::make_unique<UserObject>(UserObject{data, destroy, references});
  *result = reinterpret_cast<CUuserObject>(object.get());
  d.user_objects.emplace(object.get(), std::move(object));
  return CUDA_SUCCESS;
}

SIMGPU_API cuUserObjectRetain(CUuserObject handle, unsigned count) {
  SIMGPU_ENTER(cuUserObjectRetain);
  UserObject* object = Find(d, handle);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  object->references += count;
  return CUDA_SUCCESS;
}

SIMGPU_API cuUserObjectRelease(CUuserObject handle, unsigned count) {
  EndedObjects ended;
  SIMGPU_ENTER(cuUserObjectRelease);
  UserObject* object = Find(d, handle);
  if (object == nullptr || count == 0 || count > object->references) return CUDA_ERROR_INVALID_VALUE;
  Release(d, object, count, &ended);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphRetainUserObject(CUgraph handle, CUuserObject object_handle, unsigned count, unsigned flags) {
  SIMGPU_ENTER(cuGraphRetainUserObject);
  Graph* graph = FindGraphOrCaptured(d, handle);
  UserObject* object = Find(d, object_handle);
  const bool moved = (flags & CU_GRAPH_USER_OBJECT_MOVE) != 0;  // the caller's references become the graph's
  if (graph == nullptr || object == nullptr || count == 0 || (moved && count > object->references)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  graph->objects[object] += count;
  if (!moved) object->references += count;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphReleaseUserObject(CUgraph handle, CUuserObject object_handle, unsigned count) {
  EndedObjects ended;
  SIMGPU_ENTER(cuGraphReleaseUserObject);
  Graph* graph = FindGraphOrCaptured(d, handle);
  UserObject* object = Find(d, object_handle);
  if (graph == nullptr || object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  auto held = graph->objects.find(object);
  if (held == graph->objects.end() || held->second < count) return CUDA_ERROR_INVALID_VALUE;
  held->second -= count;
  if (held->second == 0) graph->objects.erase(held);
  Release(d, object, count, &ended);
  return CUDA_SUCCESS;
}

}  // namespace simgpu
