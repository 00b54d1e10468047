// Graphs as programs use them: captured and updated, built by hand, cloned, with objects they keep.
#include <string>

#include "tests/simgpu/check.cuh"

__global__ void Scale(float* x, int n) {
  if (threadIdx.x < n) x[threadIdx.x] *= 2.0f;
}

std::string order;  // written by the host nodes
void Write(void* text) { order += static_cast<const char*>(text); }
void Count(void* count) { ++*static_cast<int*>(count); }

cudaStream_t stream;

std::string RunGraph(cudaGraphExec_t exec) {
  order.clear();
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  return order;
}

cudaGraph_t Captured(float* block, int byte, bool second) {
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  Scale<<<1, 32, 0, stream>>>(block, 3);
  CHECK(cudaMemsetAsync(block, byte, 64, stream));
  if (second) CHECK(cudaLaunchHostFunc(stream, Write, const_cast<char*>("captured")));
  CHECK(cudaStreamEndCapture(stream, &graph));
  return graph;
}

// The executable uses the update's block, not the old one, which is gone by then.
void Updates() {
  float *a, *b;
  CHECK(cudaMalloc(&a, 1 << 20));
  CHECK(cudaMalloc(&b, 1 << 20));
  cudaGraph_t first = Captured(a, 1, true), next = Captured(b, 2, true), shorter = Captured(b, 3, false);
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, first, 0));
  EXPECT(RunGraph(exec) == "captured");
  cudaGraphExecUpdateResultInfo info;
  CHECK(cudaGraphExecUpdate(exec, next, &info));
  EXPECT(info.result == cudaGraphExecUpdateSuccess);
  CHECK(cudaFree(a));
  EXPECT(RunGraph(exec) == "captured");
  unsigned char byte = 0;
  CHECK(cudaMemcpy(&byte, b, 1, cudaMemcpyDeviceToHost));
  EXPECT(byte == 2);

  EXPECT(cudaGraphExecUpdate(exec, shorter, &info) == cudaErrorGraphExecUpdateFailure);
  EXPECT(info.result == cudaGraphExecUpdateErrorTopologyChanged && info.errorNode == nullptr);
  cudaGraph_t other;
  CHECK(cudaGraphCreate(&other, 0));
  cudaGraphNode_t nodes[3];
  for (cudaGraphNode_t& node : nodes) CHECK(cudaGraphAddEmptyNode(&node, other, nullptr, 0));
  EXPECT(cudaGraphExecUpdate(exec, other, &info) == cudaErrorGraphExecUpdateFailure);
  EXPECT(info.result == cudaGraphExecUpdateErrorNodeTypeChanged && info.errorNode == nodes[0]);
  EXPECT(RunGraph(exec) == "captured");  // as it was
  cudaGetLastError();

  // The kernel node of the graph that it was made from, with another block.
  size_t count = 0;
  CHECK(cudaGraphGetNodes(first, nullptr, &count));
  EXPECT(count == 3);
  CHECK(cudaGraphGetNodes(first, nodes, &count));
  cudaGraphNodeType type;
  CHECK(cudaGraphNodeGetType(nodes[0], &type));
  EXPECT(type == cudaGraphNodeTypeKernel);
  float* c;
  int n = 3;
  CHECK(cudaMalloc(&c, 1 << 20));
  void* arguments[] = {&c, &n};
  cudaKernelNodeParams params = {};
  params.func = reinterpret_cast<void*>(Scale);
  params.gridDim = dim3(1);
  params.blockDim = dim3(32);
  params.kernelParams = arguments;
  CHECK(cudaGraphExecKernelNodeSetParams(exec, nodes[0], &params));
  EXPECT(cudaGraphExecKernelNodeSetParams(exec, nodes[1], &params) != cudaSuccess);  // a memset
  RunGraph(exec);
  CHECK(cudaGraphExecDestroy(exec));
  for (cudaGraph_t graph : {first, next, shorter, other}) CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFree(b));
  CHECK(cudaFree(c));
}

cudaGraphNode_t HostNode(cudaGraph_t graph, const char* text) {
  cudaHostNodeParams params = {Write, const_cast<char*>(text)};
  cudaGraphNode_t node;
  CHECK(cudaGraphAddHostNode(&node, graph, nullptr, 0, &params));
  return node;
}

void ByHand() {
  cudaGraph_t graph, child;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphCreate(&child, 0));
  HostNode(child, "x");
  cudaGraphNode_t a = HostNode(graph, "a"), b = HostNode(graph, "b"), c = HostNode(graph, "c"), inner;
  CHECK(cudaGraphAddChildGraphNode(&inner, graph, &c, 1, child));
  cudaGraphNode_t from[] = {c, b}, to[] = {b, a};  // c before b before a
  CHECK(cudaGraphAddDependencies(graph, from, to, nullptr, 2));
  EXPECT(cudaGraphAddDependencies(graph, &a, &c, nullptr, 1) == cudaErrorInvalidValue);  // a circle
  EXPECT(cudaGraphAddDependencies(child, &a, &c, nullptr, 1) == cudaErrorInvalidValue);  // not its nodes
  cudaGetLastError();

  float *device, *scaled, host[16] = {};  // a kernel's operands would read back as zeros
  int n = 2;
  CHECK(cudaMalloc(&device, sizeof host));
  CHECK(cudaMalloc(&scaled, sizeof host));
  void* arguments[] = {&scaled, &n};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(Scale);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(32);
  kernel.kernelParams = arguments;
  cudaMemsetParams memset = {};
  memset.dst = device;
  memset.value = 5;
  memset.elementSize = 1;
  memset.width = sizeof host;
  memset.height = 1;
  cudaGraphNode_t fill, scale, copy;
  CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, host, device, sizeof host, cudaMemcpyDeviceToHost));
  CHECK(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &memset));
  CHECK(cudaGraphAddKernelNode(&scale, graph, &fill, 1, &kernel));
  CHECK(cudaGraphAddDependencies(graph, &scale, &copy, nullptr, 1));

  cudaGraph_t clone;
  cudaGraphExec_t exec;
  cudaGraphInstantiateParams params = {};
  CHECK(cudaGraphClone(&clone, graph));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphDestroy(child));
  CHECK(cudaGraphInstantiateWithParams(&exec, clone, &params));
  EXPECT(RunGraph(exec) == "cbax");
  EXPECT(reinterpret_cast<unsigned char*>(host)[63] == 5);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(clone));
  CHECK(cudaFree(device));
  CHECK(cudaFree(scaled));
}

// The object ends with its last reference: the caller's, the graph's, the executable's.
void Objects() {
  int ended = 0;
  cudaUserObject_t object;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaUserObjectCreate(&object, &ended, Count, 1, cudaUserObjectNoDestructorSync));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr, nullptr, nullptr));
  CHECK(cudaGraphRetainUserObject(graph, object, 1, 0));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaUserObjectRelease(object, 1));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  EXPECT(ended == 0);
  CHECK(cudaGraphExecDestroy(exec));
  EXPECT(ended == 1);

  CHECK(cudaUserObjectCreate(&object, &ended, Count, 3, cudaUserObjectNoDestructorSync));
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphRetainUserObject(graph, object, 3, cudaGraphUserObjectMove));
  CHECK(cudaGraphReleaseUserObject(graph, object, 1));
  EXPECT(ended == 1);
  EXPECT(cudaGraphReleaseUserObject(graph, object, 3) == cudaErrorInvalidValue);
  CHECK(cudaGraphDestroy(graph));
  EXPECT(ended == 2);
  EXPECT(cudaUserObjectRelease(object, 1) == cudaErrorInvalidValue);
}

int main() {
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Updates();
  ByHand();
  Objects();
  CHECK(cudaStreamDestroy(stream));
  printf("done\n");
  return 0;
}
