// Copies between devices as nodes of graphs that are built by hand. A node's parameters have no place for the contexts
// of both ends. A captured copy has one. So such a node becomes a child graph of one captured copy. The program has the
// child's handle, and a change of the executable's copy replaces the child.
#include "preload/hooks/hook_table.h"
#include "preload/hooks/peer_copies.h"
#include "preload/process/current_scope.h"
#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"
#include "preload/process/options.h"

using hotpack::CopyWay;
using hotpack::CudaDriver;
using hotpack::HookScope;

namespace {

// The capture goes through the hooks, as one of the program's: no release may come in between. Call without a
// HookScope.
CUresult CaptureCopy(const CudaDriver& driver, const CUDA_MEMCPY3D_PEER& named, CUgraph* graph) {
  *graph = nullptr;
  if (driver.StreamCreate == nullptr || driver.GraphDestroy == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const hotpack::CurrentScope scope(driver, named.dstContext);
  CUstream stream = nullptr;
  if (!scope) return CUDA_ERROR_INVALID_CONTEXT;
  CUresult result = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return result;
  result = Hook_cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (result == CUDA_SUCCESS) {
    using Copy = CUresult (*)(const CUDA_MEMCPY3D_PEER*, CUstream);
    const auto copy = reinterpret_cast<Copy>(hotpack::NextOf(hotpack::HookId::kcuMemcpy3DPeerAsync));
    const CUresult copied = copy(&named, stream);
    result = Hook_cuStreamEndCapture(stream, graph);
    if (copied != CUDA_SUCCESS) result = copied;
  }
  Hook_cuStreamDestroy_v2(stream);
  if (result == CUDA_SUCCESS || *graph == nullptr) return result;
  driver.GraphDestroy(*graph);
  *graph = nullptr;
  return result;
}

// plain() and child(driver, graph) -> CUresult call the driver.
template <typename Plain, typename Child>
CUresult Put(const CUDA_MEMCPY3D* copy, Plain plain, Child child) noexcept try {
  CUDA_MEMCPY3D_PEER named = {};
  CopyWay way = CopyWay::kPlain;
  const CudaDriver* driver = nullptr;
  {
    HookScope scope;
    if (scope.Active() && copy != nullptr && hotpack::GetOptions().peer_copies) {
      driver = hotpack::Driver();
      if (driver != nullptr) way = hotpack::FindCopyWay(*copy, &named);
    }
    const CUresult result = way != CopyWay::kPeer ? plain() : CUDA_ERROR_INVALID_VALUE;
    if (way == CopyWay::kPlain || result != CUDA_ERROR_INVALID_VALUE) return result;
  }
  CUgraph graph = nullptr;
  CUresult result = CaptureCopy(*driver, named, &graph);
  if (result != CUDA_SUCCESS) return result;
  const HookScope scope;
  result = child(*driver, graph);
  driver->GraphDestroy(graph);
  if (result == CUDA_SUCCESS) hotpack::CountPeerCopy(named);
  return result;
} catch (...) {
  return CUDA_ERROR_OUT_OF_MEMORY;
}

template <typename Plain>
CUresult Add(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count, const CUDA_MEMCPY3D* copy,
             Plain plain) {
  return Put(copy, plain, [=](const CudaDriver& driver, CUgraph child) {
    return driver.GraphAddChildGraphNode != nullptr ? driver.GraphAddChildGraphNode(node, graph, after, count, child)
                                                    : CUDA_ERROR_NOT_SUPPORTED;
  });
}

// Null: the node is no copy.
const CUDA_MEMCPY3D* CopyOf(const CUgraphNodeParams* params) {
  return params != nullptr && params->type == CU_GRAPH_NODE_TYPE_MEMCPY ? &params->memcpy.copyParams : nullptr;
}

}  // namespace

CUresult Hook_cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                                   const CUDA_MEMCPY3D* copy, CUcontext context) {
  return Add(node, graph, after, count, copy,
             [=] { return HOTPACK_NEXT(cuGraphAddMemcpyNode)(node, graph, after, count, copy, context); });
}

CUresult Hook_cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                             CUgraphNodeParams* params) {
  return Add(node, graph, after, count, CopyOf(params),
             [=] { return HOTPACK_NEXT(cuGraphAddNode)(node, graph, after, count, params); });
}

// Edges with data of their own concern kernels only: a child graph has none.
CUresult Hook_cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params) {
  return Add(node, graph, after, count, edges == nullptr ? CopyOf(params) : nullptr,
             [=] { return HOTPACK_NEXT(cuGraphAddNode_v2)(node, graph, after, edges, count, params); });
}

CUresult Hook_cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* copy,
                                             CUcontext context) {
  return Put(
      copy, [=] { return HOTPACK_NEXT(cuGraphExecMemcpyNodeSetParams)(exec, node, copy, context); },
      [=](const CudaDriver& driver, CUgraph child) {
        return driver.GraphExecChildGraphNodeSetParams != nullptr
                   ? driver.GraphExecChildGraphNodeSetParams(exec, node, child)
                   : CUDA_ERROR_NOT_SUPPORTED;
      });
}
