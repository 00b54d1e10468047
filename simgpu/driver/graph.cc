// Graphs: created, instantiated, launched, listed. work.h lists the simplifications.
#include <algorithm>

#include "simgpu/driver/api.h"
#include "simgpu/driver/work.h"

namespace simgpu {
namespace {

constexpr DefaultStream kLegacy = DefaultStream::kLegacy;
constexpr DefaultStream kPerThread = DefaultStream::kPerThread;

GraphNode* From(CUgraphNode handle) { return reinterpret_cast<GraphNode*>(handle); }
CUgraphNode To(GraphNode* node) { return reinterpret_cast<CUgraphNode>(node); }

CUresult Instantiate(CUgraphExec* result, CUgraph handle, unsigned long long flags) {
  Driver& d = TheDriver();
  const Graph* graph = FindGraph(d, handle);
  if (result == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto exec = std::make_unique<GraphExec>();
  AddSteps(*graph, &exec->steps);
  exec->memory = graph->memory;
  exec->given_before = graph->given_before == kAnyBlock ? d.checker.serial() : graph->given_before;
  exec->flags = flags;
  exec->objects = graph->objects;
  for (const auto& [object, count] : exec->objects) object->references += count;
  *result = reinterpret_cast<CUgraphExec>(exec.get());
  d.graph_execs.emplace(exec.get(), std::move(exec));
  return CUDA_SUCCESS;
}

// Host functions run without the lock, in their order.
CUresult Launch(CUgraphExec handle, CUstream stream_handle, DefaultStream variant) {
  SIMGPU_ENTER_UNLOCKED(cuGraphLaunch);
  std::unique_lock<std::mutex> lock(d.mutex);
  GraphExec* exec = FindExec(d, handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_WORK_STREAM(stream, stream_handle, variant);
  if (stream->capture != nullptr) {
    stream->capture->valid = false;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  const std::vector<GraphExec::Step> steps = exec->steps;
  const uint64_t given_before = exec->given_before;
  CUresult result = CUDA_SUCCESS;
  const Epoch op = d.order.Submit(stream->order);
  for (const GraphExec::Step& step : steps) {
    if (step.host != nullptr) {
      lock.unlock();
      step.host(step.host_data);
      lock.lock();
    } else if (step.run == nullptr) {
      continue;
    } else if (const CUresult status = step.run(d, op, step.given_before != 0 ? step.given_before : given_before);
               status != CUDA_SUCCESS) {
      result = status;
    }
  }
  return result;
}

CUresult Upload(CUgraphExec handle) {
  SIMGPU_ENTER(cuGraphUpload);
  return FindExec(d, handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

template <typename Get>
CUresult List(const std::vector<std::unique_ptr<GraphNode>>& nodes, CUgraphNode* result, size_t* count, Get wanted) {
  size_t found = 0;
  for (const auto& node : nodes) {
    if (!wanted(*node)) continue;
    if (result != nullptr && found < *count) result[found] = To(node.get());
    ++found;
  }
  *count = result == nullptr ? found : std::min(found, *count);
  return CUDA_SUCCESS;
}

}  // namespace

void FreeGraphMemory(Driver& d, std::shared_ptr<GraphMemory> memory) {
  if (memory == nullptr || memory.use_count() > 1) return;
  for (uint64_t base : memory->bases) {
    Allocation* allocation = d.memory.FindAllocationStart(base);
    if (allocation == nullptr || !allocation->graph) continue;
    d.checker.Returned(base, Teller::kDriver);
    d.memory.Free(allocation, &d.devices[allocation->device].physical);
  }
}

SIMGPU_API cuGraphCreate(CUgraph* result, unsigned) {
  SIMGPU_ENTER(cuGraphCreate);
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto graph = std::make_unique<Graph>();
  *result = reinterpret_cast<CUgraph>(graph.get());
  d.graphs.emplace(graph.get(), std::move(graph));
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphDestroy(CUgraph handle) {
  EndedObjects ended;
  SIMGPU_ENTER(cuGraphDestroy);
  const auto found = d.graphs.find(reinterpret_cast<Graph*>(handle));  // not a child graph
  if (found == d.graphs.end()) return CUDA_ERROR_INVALID_VALUE;
  Graph* graph = found->second.get();
  FreeGraphMemory(d, std::move(graph->memory));
  Release(d, graph->objects, &ended);
  d.graphs.erase(graph);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphExecDestroy(CUgraphExec handle) {
  EndedObjects ended;
  SIMGPU_ENTER(cuGraphExecDestroy);
  GraphExec* exec = FindExec(d, handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  FreeGraphMemory(d, std::move(exec->memory));
  Release(d, exec->objects, &ended);
  d.graph_execs.erase(exec);
  return CUDA_SUCCESS;
}

static CUresult InstantiateOld(CUgraphExec* result, CUgraph graph) {
  SIMGPU_ENTER(cuGraphInstantiate);
  return Instantiate(result, graph, 0);
}
SIMGPU_API cuGraphInstantiate(CUgraphExec* result, CUgraph graph, CUgraphNode*, char*, size_t) {
  return InstantiateOld(result, graph);
}
SIMGPU_API cuGraphInstantiate_v2(CUgraphExec* result, CUgraph graph, CUgraphNode*, char*, size_t) {
  return InstantiateOld(result, graph);
}
SIMGPU_API cuGraphInstantiateWithFlags(CUgraphExec* result, CUgraph graph, unsigned long long flags) {
  SIMGPU_ENTER(cuGraphInstantiateWithFlags);
  return Instantiate(result, graph, flags);
}
static CUresult InstantiateWithParams(CUgraphExec* result, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  SIMGPU_ENTER(cuGraphInstantiateWithParams);
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return Instantiate(result, graph, params->flags);
}
SIMGPU_API cuGraphInstantiateWithParams(CUgraphExec* result, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return InstantiateWithParams(result, graph, params);
}
SIMGPU_API cuGraphInstantiateWithParams_ptsz(CUgraphExec* result, CUgraph graph,
                                             CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return InstantiateWithParams(result, graph, params);
}
SIMGPU_API cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  SIMGPU_ENTER(cuGraphExecGetFlags);
  const GraphExec* exec = FindExec(d, handle);
  if (exec == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphLaunch(CUgraphExec exec, CUstream stream) { return Launch(exec, stream, kLegacy); }
SIMGPU_API cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) { return Launch(exec, stream, kPerThread); }
SIMGPU_API cuGraphUpload(CUgraphExec exec, CUstream) { return Upload(exec); }
SIMGPU_API cuGraphUpload_ptsz(CUgraphExec exec, CUstream) { return Upload(exec); }

SIMGPU_API cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  SIMGPU_ENTER(cuGraphGetNodes);
  const Graph* graph = FindGraph(d, handle);
  if (graph == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return List(graph->nodes, nodes, count, [](const GraphNode&) { return true; });
}

SIMGPU_API cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  SIMGPU_ENTER(cuGraphGetRootNodes);
  const Graph* graph = FindGraph(d, handle);
  if (graph == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const GraphNode* first = graph->nodes.empty() ? nullptr : graph->nodes.front().get();
  return List(graph->nodes, nodes, count, [&](const GraphNode& n) { return &n == first; });
}

SIMGPU_API cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  SIMGPU_ENTER(cuGraphNodeGetType);
  if (node == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = From(node)->type;
  return CUDA_SUCCESS;
}

}  // namespace simgpu
