// Copies between devices as nodes of graphs that are built by hand. A node's parameters have no place for the contexts
// of both ends. A captured copy has one. So such a node becomes a child graph, and the program has the child's handle:
//
//   node of the program ── outer graph ── middle node ── inner graph ── the copy
//
// Two graphs, one in the other, because a program hardly makes such a child itself: the calls below know a converted
// node by it, in a clone too. A change of the node's copy replaces the middle node (cuda.h,
// cuGraphChildGraphNodeGetGraph: changes to that graph are reflected in the node). A change of the executable's copy
// replaces the outer graph, whose shape stays.
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

struct NodeOfCopy {
  const CUDA_MEMCPY3D* copy = nullptr;
  CUcontext context = nullptr;  // that the node names; null: none
  CUDA_MEMCPY3D_PEER named = {};
  CopyWay way = CopyWay::kPlain;
};

// Returns null if the copy is left to the driver.
const CudaDriver* FindWay(NodeOfCopy* node) {
  if (node->copy == nullptr || !hotpack::GetOptions().peer_copies) return nullptr;
  const CudaDriver* driver = hotpack::Driver();
  if (driver == nullptr || driver->GraphAddChildGraphNode == nullptr || driver->GraphCreate == nullptr ||
      driver->GraphDestroy == nullptr) {
    return nullptr;
  }
  node->way = hotpack::FindCopyWay(*node->copy, &node->named);
  return driver;
}

// Makes the inner graph: as the program wrote the copy, or by its contexts. Call without a HookScope.
CUresult MakeInner(const CudaDriver& driver, const NodeOfCopy& node, CUgraph* inner) {
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  if (node.way != CopyWay::kPeer) {
    CUgraphNode copy = nullptr;
    CUcontext context = node.context;
    if (context == nullptr) context = hotpack::CurrentContext(driver);
    result = driver.GraphCreate(inner, 0);
    if (result != CUDA_SUCCESS) return result;
    result = HOTPACK_NEXT(cuGraphAddMemcpyNode)(&copy, *inner, nullptr, 0, node.copy, context);
    if (result == CUDA_SUCCESS) return result;
    driver.GraphDestroy(*inner);
    if (node.way == CopyWay::kPlain || result != CUDA_ERROR_INVALID_VALUE) return result;
  }
  result = CaptureCopy(driver, node.named, inner);
  if (result == CUDA_SUCCESS) hotpack::CountPeerCopy(node.named);
  return result;
}

// use(graph) -> CUresult calls the driver. Call without a HookScope.
template <typename Use>
CUresult WithInner(const CudaDriver& driver, const NodeOfCopy& node, Use use) {
  CUgraph inner = nullptr;
  CUresult result = MakeInner(driver, node, &inner);
  if (result != CUDA_SUCCESS) return result;
  const HookScope scope;
  result = use(inner);
  driver.GraphDestroy(inner);
  return result;
}

template <typename Use>
CUresult WithOuter(const CudaDriver& driver, const NodeOfCopy& node, Use use) {
  return WithInner(driver, node, [&](CUgraph inner) {
    CUgraph outer = nullptr;
    CUgraphNode middle = nullptr;
    CUresult result = driver.GraphCreate(&outer, 0);
    if (result != CUDA_SUCCESS) return result;
    result = driver.GraphAddChildGraphNode(&middle, outer, nullptr, 0, inner);
    if (result == CUDA_SUCCESS) result = use(outer);
    driver.GraphDestroy(outer);
    return result;
  });
}

struct Converted {
  CUgraph outer = nullptr;
  CUgraphNode middle = nullptr, copy = nullptr;
};

// Finds the only node of a child graph. Returns false if the node is no child graph, or its graph has other nodes.
bool OnlyNodeOf(const CudaDriver& driver, CUgraphNode child, CUgraph* graph, CUgraphNode* only, CUgraphNodeType* type) {
  CUgraphNode nodes[2] = {};
  size_t count = 2;
  CUgraphNodeType own = CU_GRAPH_NODE_TYPE_EMPTY;
  if (driver.GraphNodeGetType(child, &own) != CUDA_SUCCESS || own != CU_GRAPH_NODE_TYPE_GRAPH ||
      driver.GraphChildGraphNodeGetGraph(child, graph) != CUDA_SUCCESS ||
      driver.GraphGetNodes(*graph, nodes, &count) != CUDA_SUCCESS || count != 1) {
    return false;
  }
  *only = nodes[0];
  return driver.GraphNodeGetType(*only, type) == CUDA_SUCCESS;
}

bool FindConverted(const CudaDriver& driver, CUgraphNode node, Converted* found) {
  if (driver.GraphNodeGetType == nullptr || driver.GraphChildGraphNodeGetGraph == nullptr ||
      driver.GraphGetNodes == nullptr) {
    return false;
  }
  CUgraph inner = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  return OnlyNodeOf(driver, node, &found->outer, &found->middle, &type) && type == CU_GRAPH_NODE_TYPE_GRAPH &&
         OnlyNodeOf(driver, found->middle, &inner, &found->copy, &type) && type == CU_GRAPH_NODE_TYPE_MEMCPY;
}

// The functions below call the driver by plain().

template <typename Plain>
CUresult Add(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count, NodeOfCopy copy,
             Plain plain) noexcept try {
  const CudaDriver* driver = nullptr;
  {
    HookScope scope;
    if (scope.Active()) driver = FindWay(&copy);
    const CUresult result = copy.way != CopyWay::kPeer ? plain() : CUDA_ERROR_INVALID_VALUE;
    if (copy.way == CopyWay::kPlain || result != CUDA_ERROR_INVALID_VALUE) return result;
  }
  copy.way = CopyWay::kPeer;
  return WithOuter(*driver, copy,
                   [&](CUgraph outer) { return driver->GraphAddChildGraphNode(node, graph, after, count, outer); });
} catch (...) {
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// A node that is not converted cannot become a child graph: the driver refuses a copy that it cannot make.
template <typename Plain>
CUresult Set(CUgraphNode node, NodeOfCopy copy, Plain plain) noexcept try {
  const CudaDriver* driver = nullptr;
  Converted converted;
  {
    HookScope scope;
    if (scope.Active()) driver = FindWay(&copy);
    if (driver == nullptr || driver->GraphDestroyNode == nullptr || !FindConverted(*driver, node, &converted)) {
      return plain();
    }
  }
  return WithInner(*driver, copy, [&](CUgraph inner) {
    CUgraphNode middle = nullptr;
    CUresult result = driver->GraphAddChildGraphNode(&middle, converted.outer, nullptr, 0, inner);
    if (result != CUDA_SUCCESS) return result;
    result = driver->GraphDestroyNode(converted.middle);
    if (result != CUDA_SUCCESS) driver->GraphDestroyNode(middle);  // the node stays as it was
    return result;
  });
} catch (...) {
  return CUDA_ERROR_OUT_OF_MEMORY;
}

template <typename Plain>
CUresult SetExecutable(CUgraphExec exec, CUgraphNode node, NodeOfCopy copy, Plain plain) noexcept try {
  const CudaDriver* driver = nullptr;
  Converted converted;
  {
    HookScope scope;
    if (scope.Active()) driver = FindWay(&copy);
    const CUresult result = copy.way != CopyWay::kPeer ? plain() : CUDA_ERROR_INVALID_VALUE;
    if (driver == nullptr || result != CUDA_ERROR_INVALID_VALUE) return result;
    if (driver->GraphExecChildGraphNodeSetParams == nullptr || !FindConverted(*driver, node, &converted)) return result;
  }
  return WithOuter(*driver, copy,
                   [&](CUgraph outer) { return driver->GraphExecChildGraphNodeSetParams(exec, node, outer); });
} catch (...) {
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// Without a copy: the node is of another type.
NodeOfCopy CopyOf(const CUgraphNodeParams* params) {
  NodeOfCopy node;
  if (params == nullptr || params->type != CU_GRAPH_NODE_TYPE_MEMCPY) return node;
  node.copy = &params->memcpy.copyParams;
  node.context = params->memcpy.copyCtx;
  return node;
}

NodeOfCopy CopyOf(const CUDA_MEMCPY3D* copy, CUcontext context) { return {copy, context, {}, CopyWay::kPlain}; }

}  // namespace

CUresult Hook_cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                                   const CUDA_MEMCPY3D* copy, CUcontext context) {
  return Add(node, graph, after, count, CopyOf(copy, context),
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
  return Add(node, graph, after, count, edges == nullptr ? CopyOf(params) : NodeOfCopy(),
             [=] { return HOTPACK_NEXT(cuGraphAddNode_v2)(node, graph, after, edges, count, params); });
}

CUresult Hook_cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* copy) {
  return Set(node, CopyOf(copy, nullptr), [=] { return HOTPACK_NEXT(cuGraphMemcpyNodeSetParams)(node, copy); });
}

CUresult Hook_cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  return Set(node, CopyOf(params), [=] { return HOTPACK_NEXT(cuGraphNodeSetParams)(node, params); });
}

CUresult Hook_cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* copy,
                                             CUcontext context) {
  return SetExecutable(exec, node, CopyOf(copy, context),
                       [=] { return HOTPACK_NEXT(cuGraphExecMemcpyNodeSetParams)(exec, node, copy, context); });
}

CUresult Hook_cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  return SetExecutable(exec, node, CopyOf(params),
                       [=] { return HOTPACK_NEXT(cuGraphExecNodeSetParams)(exec, node, params); });
}

// The driver's answer for the copy itself: addresses and extents are the program's, types and pitches may be spelt
// differently.
CUresult Hook_cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* copy) {
  HookScope scope;
  Converted converted;
  const CudaDriver* driver = scope.Active() && hotpack::GetOptions().peer_copies ? hotpack::Driver() : nullptr;
  const bool found = driver != nullptr && FindConverted(*driver, node, &converted);
  return HOTPACK_NEXT(cuGraphMemcpyNodeGetParams)(found ? converted.copy : node, copy);
}
