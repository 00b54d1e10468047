// Graphs.
#include "simgpu/runtime/copy_spec.h"
#include "simgpu/runtime/runtime.h"

using namespace simgpu_runtime;

CUDART_FORWARD_BOTH(cudaGraphLaunch, cudaGraphLaunch_ptsz, cuGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream),
                    (exec, stream))
CUDART_FORWARD_BOTH(cudaGraphUpload, cudaGraphUpload_ptsz, cuGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream),
                    (exec, stream))

CUDART_API cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  CUDART_READY();
  return Set(drv.cuGraphCreate(graph, flags));
}

CUDART_API cudaGraphDestroy(cudaGraph_t graph) {
  CUDART_READY();
  return Set(drv.cuGraphDestroy(graph));
}

CUDART_API cudaGraphExecDestroy(cudaGraphExec_t exec) {
  CUDART_READY();
  return Set(drv.cuGraphExecDestroy(exec));
}

CUDART_API cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  CUDART_READY();
  return Set(drv.cuGraphInstantiateWithFlags(exec, graph, flags));
}

CUDART_API cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}

CUDART_FORWARD(cudaGraphGetNodes, cuGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count),
               (graph, nodes, count))
CUDART_FORWARD(cudaGraphGetRootNodes, cuGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count),
               (graph, nodes, count))
CUDART_FORWARD(cudaGraphClone, cuGraphClone, (cudaGraph_t * clone, cudaGraph_t graph), (clone, graph))
CUDART_FORWARD(cudaGraphNodeGetType, cuGraphNodeGetType, (cudaGraphNode_t node, cudaGraphNodeType* type),
               (node, reinterpret_cast<CUgraphNodeType*>(type)))
CUDART_FORWARD(cudaGraphAddEmptyNode, cuGraphAddEmptyNode,
               (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count),
               (node, graph, after, count))
CUDART_FORWARD(cudaGraphAddChildGraphNode, cuGraphAddChildGraphNode,
               (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                cudaGraph_t child),
               (node, graph, after, count, child))
CUDART_FORWARD(cudaGraphAddDependencies, cuGraphAddDependencies,
               (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                const cudaGraphEdgeData* edges, size_t count),
               (graph, from, to, reinterpret_cast<const CUgraphEdgeData*>(edges), count))
CUDART_FORWARD(cudaUserObjectRetain, cuUserObjectRetain, (cudaUserObject_t object, unsigned count), (object, count))
CUDART_FORWARD(cudaUserObjectRelease, cuUserObjectRelease, (cudaUserObject_t object, unsigned count), (object, count))
CUDART_FORWARD(cudaUserObjectCreate, cuUserObjectCreate,
               (cudaUserObject_t * object, void* data, cudaHostFn_t destroy, unsigned references, unsigned flags),
               (object, data, destroy, references, flags))
CUDART_FORWARD(cudaGraphRetainUserObject, cuGraphRetainUserObject,
               (cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags),
               (graph, object, count, flags))
CUDART_FORWARD(cudaGraphReleaseUserObject, cuGraphReleaseUserObject,
               (cudaGraph_t graph, cudaUserObject_t object, unsigned count), (graph, object, count))

CUDART_API cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  CUDART_READY();
  if (flags == nullptr) return Set(cudaErrorInvalidValue);
  cuuint64_t value = 0;
  const CUresult status = drv.cuGraphExecGetFlags(exec, &value);
  *flags = value;
  return Set(status);
}

CUDART_BOTH(cudaGraphInstantiateWithParams, cudaGraphInstantiateWithParams_ptsz,
            (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams* params), (exec, graph, params), {
              CUDART_READY();
              return Set(drv.cuGraphInstantiateWithParams[pt](
                  exec, graph, reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(params)));
            })

CUDART_API cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  CUDART_READY();
  CUgraphExecUpdateResultInfo found = {};
  const CUresult status = drv.cuGraphExecUpdate(exec, graph, &found);
  if (info != nullptr) {
    info->result = static_cast<cudaGraphExecUpdateResult>(found.result);
    info->errorNode = found.errorNode;
    info->errorFromNode = found.errorFromNode;
  }
  return Set(status);
}

static CUresult Convert(const cudaKernelNodeParams* from, CUDA_KERNEL_NODE_PARAMS* to) {
  if (from == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *to = {};
  if (FindKernel(from->func, &to->kern) != CUDA_SUCCESS) return static_cast<CUresult>(cudaErrorInvalidDeviceFunction);
  to->gridDimX = from->gridDim.x;
  to->gridDimY = from->gridDim.y;
  to->gridDimZ = from->gridDim.z;
  to->blockDimX = from->blockDim.x;
  to->blockDimY = from->blockDim.y;
  to->blockDimZ = from->blockDim.z;
  to->sharedMemBytes = from->sharedMemBytes;
  to->kernelParams = from->kernelParams;
  to->extra = from->extra;
  return CUDA_SUCCESS;
}

CUDART_API cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                  const cudaKernelNodeParams* params) {
  CUDART_READY();
  CUDA_KERNEL_NODE_PARAMS p;
  if (const CUresult bad = Convert(params, &p); bad != CUDA_SUCCESS) return Set(bad);
  return Set(drv.cuGraphAddKernelNode(node, graph, after, count, &p));
}

CUDART_API cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params) {
  CUDART_READY();
  CUDA_KERNEL_NODE_PARAMS p;
  if (const CUresult bad = Convert(params, &p); bad != CUDA_SUCCESS) return Set(bad);
  return Set(drv.cuGraphKernelNodeSetParams(node, &p));
}

CUDART_API cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                            const cudaKernelNodeParams* params) {
  CUDART_READY();
  CUDA_KERNEL_NODE_PARAMS p;
  if (const CUresult bad = Convert(params, &p); bad != CUDA_SUCCESS) return Set(bad);
  return Set(drv.cuGraphExecKernelNodeSetParams(exec, node, &p));
}

CUDART_API cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                const cudaHostNodeParams* params) {
  CUDART_READY();
  if (params == nullptr) return Set(cudaErrorInvalidValue);
  CUDA_HOST_NODE_PARAMS p = {};
  p.fn = params->fn;
  p.userData = params->userData;
  return Set(drv.cuGraphAddHostNode(node, graph, after, count, &p));
}

CUDART_API cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                  const cudaMemsetParams* params) {
  CUDART_READY();
  if (params == nullptr) return Set(cudaErrorInvalidValue);
  CUDA_MEMSET_NODE_PARAMS p = {};
  p.dst = reinterpret_cast<CUdeviceptr>(params->dst);
  p.pitch = params->pitch;
  p.value = params->value;
  p.elementSize = params->elementSize;
  p.width = params->width;
  p.height = params->height;
  CUcontext context = nullptr;
  drv.cuCtxGetCurrent(&context);
  return Set(drv.cuGraphAddMemsetNode(node, graph, after, count, &p, context));
}

static cudaError_t AddCopy(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                           const cudaMemcpy3DParms* params) {
  CUDART_READY();
  CUDA_MEMCPY3D spec;
  if (const CUresult bad = Spec3D(params, &spec); bad != CUDA_SUCCESS) return Set(bad);
  CUcontext context = nullptr;
  drv.cuCtxGetCurrent(&context);
  return Set(drv.cuGraphAddMemcpyNode(node, graph, after, count, &spec, context));
}

CUDART_API cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                  const cudaMemcpy3DParms* params) {
  return AddCopy(node, graph, after, count, params);
}

CUDART_API cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                    size_t count, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpy3DParms params = {};
  params.srcPtr = {const_cast<void*>(from), bytes, bytes, 1};
  params.dstPtr = {to, bytes, bytes, 1};
  params.extent = {bytes, 1, 1};
  params.kind = kind;
  return AddCopy(node, graph, after, count, &params);
}
