// Copies as nodes of graphs: added, queried, changed. Nodes of other types cannot be changed here.
#include "simgpu/driver/api.h"
#include "simgpu/driver/copy_work.h"

namespace simgpu {
namespace {

GraphNode* From(CUgraphNode handle) { return reinterpret_cast<GraphNode*>(handle); }

CUresult AddCopy(Driver& d, CUgraphNode* node, CUgraph handle, const CUgraphNode* after, size_t count,
                 const CUDA_MEMCPY3D* params, CUcontext context) {
  Graph* graph = FindGraph(d, handle);
  if (node == nullptr || graph == nullptr || params == nullptr || !ValidDependencies(*graph, after, count)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  RunWork run;
  if (const CUresult bad = CopyWork(d, *params, context, &run); bad != CUDA_SUCCESS) return bad;
  GraphNode* added = AddNode(graph, CU_GRAPH_NODE_TYPE_MEMCPY, run);
  added->copy = *params;
  added->context = context;
  *node = Placed(added, after, count);
  return CUDA_SUCCESS;
}

// Any change is allowed: the graph is not instantiated.
CUresult SetCopy(Driver& d, CUgraphNode handle, const CUDA_MEMCPY3D* params, CUcontext context) {
  if (handle == nullptr || params == nullptr || From(handle)->type != CU_GRAPH_NODE_TYPE_MEMCPY) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  GraphNode* node = From(handle);
  if (context == nullptr) context = node->context;
  if (const CUresult bad = CopyWork(d, *params, context, &node->run); bad != CUDA_SUCCESS) return bad;
  node->copy = *params;
  node->context = context;
  node->given_before = d.checker.serial();
  return CUDA_SUCCESS;
}

bool IsLinear(const CUDA_MEMCPY3D& copy) { return copy.WidthInBytes > 0 && copy.Height == 1 && copy.Depth == 1; }

// The device of an end; -1: host memory.
int DeviceOf(Driver& d, CUmemorytype type, CUdeviceptr address) {
  return type == CU_MEMORYTYPE_HOST ? -1 : d.memory.Find(address).device;
}

// cuda.h, cuGraphExecMemcpyNodeSetParams: one-dimensional before and after, and memory of the same contexts.
bool MayReplace(Driver& d, const CUDA_MEMCPY3D& before, const CUDA_MEMCPY3D& after) {
  return IsLinear(before) && IsLinear(after) &&
         DeviceOf(d, before.srcMemoryType, before.srcDevice) == DeviceOf(d, after.srcMemoryType, after.srcDevice) &&
         DeviceOf(d, before.dstMemoryType, before.dstDevice) == DeviceOf(d, after.dstMemoryType, after.dstDevice);
}

CUresult SetCopyOf(Driver& d, CUgraphExec handle, CUgraphNode node, const CUDA_MEMCPY3D* params, CUcontext context) {
  GraphExec* exec = FindExec(d, handle);
  if (exec == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (GraphExec::Step& step : exec->steps) {
    if (step.node != From(node) || step.type != CU_GRAPH_NODE_TYPE_MEMCPY) continue;
    if (!step.copy || !MayReplace(d, *step.copy, *params)) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = CopyWork(d, *params, context, &step.run); bad != CUDA_SUCCESS) return bad;
    step.copy = *params;
    step.given_before = d.checker.serial();
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

SIMGPU_API cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                                const CUDA_MEMCPY3D* params, CUcontext context) {
  SIMGPU_ENTER(cuGraphAddMemcpyNode);
  return AddCopy(d, node, graph, after, count, params, context);
}

static CUresult AddAnyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                           const CUgraphNodeParams* params) {
  SIMGPU_ENTER(cuGraphAddNode);
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (params->type != CU_GRAPH_NODE_TYPE_MEMCPY) return CUDA_ERROR_NOT_SUPPORTED;
  return AddCopy(d, node, graph, after, count, &params->memcpy.copyParams, params->memcpy.copyCtx);
}
SIMGPU_API cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                          CUgraphNodeParams* params) {
  return AddAnyNode(node, graph, after, count, params);
}
SIMGPU_API cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData*,
                             size_t count, CUgraphNodeParams* params) {
  return AddAnyNode(node, graph, after, count, params);
}

SIMGPU_API cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D* params) {
  SIMGPU_ENTER(cuGraphMemcpyNodeGetParams);
  if (handle == nullptr || params == nullptr || From(handle)->type != CU_GRAPH_NODE_TYPE_MEMCPY) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!From(handle)->copy) return CUDA_ERROR_NOT_SUPPORTED;  // captured from a copy of another form
  *params = *From(handle)->copy;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) {
  SIMGPU_ENTER(cuGraphMemcpyNodeSetParams);
  return SetCopy(d, node, params, nullptr);
}

SIMGPU_API cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  SIMGPU_ENTER(cuGraphNodeSetParams);
  if (node == nullptr || params == nullptr || params->type != From(node)->type) return CUDA_ERROR_INVALID_VALUE;
  if (params->type != CU_GRAPH_NODE_TYPE_MEMCPY) return CUDA_ERROR_NOT_SUPPORTED;
  return SetCopy(d, node, &params->memcpy.copyParams, params->memcpy.copyCtx);
}

SIMGPU_API cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params,
                                          CUcontext context) {
  SIMGPU_ENTER(cuGraphExecMemcpyNodeSetParams);
  return SetCopyOf(d, exec, node, params, context);
}

SIMGPU_API cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  SIMGPU_ENTER(cuGraphExecNodeSetParams);
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (params->type != CU_GRAPH_NODE_TYPE_MEMCPY) return CUDA_ERROR_NOT_SUPPORTED;
  return SetCopyOf(d, exec, node, &params->memcpy.copyParams, params->memcpy.copyCtx);
}

}  // namespace simgpu
