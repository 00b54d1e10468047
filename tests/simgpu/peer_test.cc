// Two devices: what each can use of the other's memory, by its kind (cuda.h, cuCtxEnablePeerAccess, cuMemSetAccess,
// cuMemPoolSetAccess), with and without peer access on the machine.
#include <gtest/gtest.h>

#include "tests/simgpu/support.h"

namespace simgpu_test {
namespace {

const int kDevices = setenv("SIMGPU_DEVICES", "2", 1);

constexpr uint64_t kBytes = 3 * kPage;

bool Apart() {
  int can = 1;
  MUST(cuDeviceCanAccessPeer(&can, 0, 1));
  return can == 0;
}

class PeerTest : public testing::Test {
 protected:
  void SetUp() override {
    MUST(cuInit(0));
    for (int i = 0; i < 2; ++i) MUST(cuDevicePrimaryCtxRetain(&context_[i], i));
    Use(0);
  }
  void Use(int device) { MUST(cuCtxSetCurrent(context_[device])); }
  CUdeviceptr Alloc(int device) {
    Use(device);
    CUdeviceptr address = 0;
    MUST(cuMemAlloc(&address, kBytes));
    return address;
  }
  static CUresult GiveAccess(CUdeviceptr address, int device) {
    CUmemAccessDesc access = {};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return cuMemSetAccess(address, kBytes, &access, 1);
  }
  CUdeviceptr Map(int device) {
    Use(device);
    CUmemAllocationProp props = {};
    props.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = 0;
    MUST(cuMemAddressReserve(&address, kBytes, 0, 0, 0));
    MUST(cuMemCreate(&handle, kBytes, &props, 0));
    MUST(cuMemMap(address, kBytes, 0, handle, 0));
    MUST(GiveAccess(address, device));
    return address;
  }
  CUdeviceptr FromPool(int device) {
    Use(device);
    CUdeviceptr address = 0;
    MUST(cuMemAllocAsync(&address, kBytes, nullptr));
    return address;
  }
  // By every kind of copy that names no contexts: the same answer of all.
  static CUresult Copy(CUdeviceptr to, CUdeviceptr from) {
    CUstream stream = nullptr;
    MUST(cuStreamCreate(&stream, 0));
    CUDA_MEMCPY2D plane = {};
    plane.srcMemoryType = plane.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    plane.srcDevice = from;
    plane.dstDevice = to;
    plane.srcPitch = plane.dstPitch = 512;
    plane.WidthInBytes = 256;
    plane.Height = kBytes / 512;
    CUDA_MEMCPY3D box = {};
    box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = from;
    box.dstDevice = to;
    box.WidthInBytes = 256;
    box.Height = box.Depth = 2;
    CUmemcpyAttributes attributes = {};
    attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    size_t bytes = kBytes, first = 0;
    CUDA_MEMCPY3D_BATCH_OP op = {};
    op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = from;
    op.dst.op.ptr.ptr = to;
    op.extent = {256, 2, 2};
    op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    const CUresult result = cuMemcpyDtoDAsync(to, from, kBytes, stream);
    EXPECT_EQ(cuMemcpyDtoD(to, from, kBytes), result);
    EXPECT_EQ(cuMemcpy(to, from, kBytes), result);
    EXPECT_EQ(cuMemcpyAsync(to, from, kBytes, stream), result);
    EXPECT_EQ(cuMemcpy2D(&plane), result);
    EXPECT_EQ(cuMemcpy2DAsync(&plane, stream), result);
    EXPECT_EQ(cuMemcpy3D(&box), result);
    EXPECT_EQ(cuMemcpy3DAsync(&box, stream), result);
    EXPECT_EQ(cuMemcpyBatchAsync(&to, &from, &bytes, 1, &attributes, &first, 1, stream), result);
    EXPECT_EQ(cuMemcpy3DBatchAsync(1, &op, 0, stream), result);
    MUST(cuStreamDestroy(stream));
    return result;
  }
  CUresult PeerCopy(CUdeviceptr to, int to_device, CUdeviceptr from, int from_device) {
    return cuMemcpyPeerAsync(to, context_[to_device], from, context_[from_device], kBytes, nullptr);
  }
  CUcontext context_[2] = {};
};

TEST_F(PeerTest, CopiesOfOrdinaryMemoryAreStaged) {
  const CUdeviceptr first = Alloc(0), second = Alloc(1);
  for (int device : {0, 1}) {
    Use(device);
    EXPECT_EQ(Copy(second, first), CUDA_SUCCESS);
    EXPECT_EQ(Copy(first, second), CUDA_SUCCESS);
    EXPECT_EQ(PeerCopy(second, 1, first, 0), CUDA_SUCCESS);
  }
}

TEST_F(PeerTest, CopiesOfMappedMemoryNeedAccess) {
  const CUdeviceptr first = Map(0), second = Map(1), ordinary = Alloc(1);
  for (int device : {0, 1}) {
    Use(device);
    EXPECT_EQ(Copy(second, first), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(PeerCopy(second, 1, first, 0), CUDA_SUCCESS) << "the driver stages it";
  }
  Use(1);
  EXPECT_EQ(Copy(ordinary, first), CUDA_ERROR_INVALID_VALUE) << "the second device reads";
  Use(0);
  EXPECT_EQ(Copy(ordinary, first), CUDA_SUCCESS) << "the first one reads its own, and writes where all are staged";
  EXPECT_EQ(GiveAccess(first, 1), Apart() ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS);
  Use(1);
  EXPECT_EQ(Copy(second, first), Apart() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

TEST_F(PeerTest, CopiesOfPoolsNeedAccess) {
  const CUdeviceptr first = FromPool(0), second = Alloc(1);
  CUmemoryPool pool = nullptr;
  MUST(cuDeviceGetDefaultMemPool(&pool, 0));
  CUmemLocation other = {CU_MEM_LOCATION_TYPE_DEVICE, {1}};
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  EXPECT_EQ(cuMemPoolGetAccess(&flags, pool, &other), CUDA_SUCCESS);
  EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  Use(1);
  EXPECT_EQ(Copy(second, first), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(PeerCopy(second, 1, first, 0), CUDA_SUCCESS);
  CUmemAccessDesc access = {};
  access.location = other;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  EXPECT_EQ(cuMemPoolSetAccess(pool, &access, 1), Apart() ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS);
  EXPECT_EQ(Copy(second, first), Apart() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

TEST_F(PeerTest, CopiesBetweenNamedContextsAreHeldToThem) {
  const CUdeviceptr first = Alloc(0), second = Alloc(1);
  EXPECT_EQ(PeerCopy(second, 0, first, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyPeer(second, nullptr, first, context_[0], kBytes), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(PeerTest, AccessIsEnabledOnce) {
  Use(0);
  EXPECT_EQ(cuCtxEnablePeerAccess(context_[0], 0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxDisablePeerAccess(context_[1]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  int supported = -1;
  MUST(cuDeviceGetP2PAttribute(&supported, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
  EXPECT_EQ(supported, Apart() ? 0 : 1);
  if (Apart()) {
    EXPECT_EQ(cuCtxEnablePeerAccess(context_[1], 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    return;
  }
  EXPECT_EQ(cuCtxEnablePeerAccess(context_[1], 0), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxEnablePeerAccess(context_[1], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  EXPECT_EQ(cuCtxDisablePeerAccess(context_[1]), CUDA_SUCCESS);
}

CUDA_MEMCPY3D Box(CUdeviceptr to, CUdeviceptr from, size_t rows) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to;
  copy.srcDevice = from;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = 64;
  copy.Height = rows;
  copy.Depth = 1;
  return copy;
}

// cuda.h, cuGraphExecMemcpyNodeSetParams: one-dimensional copies only, of memory on the same devices. A node itself
// takes any copy.
TEST_F(PeerTest, WhatACopyOfAnExecutableMayBecome) {
  const CUdeviceptr here = Alloc(0), there = Alloc(1);
  Use(0);
  const CUDA_MEMCPY3D row = Box(there, here, 1), other_row = Box(there + 64, here + 128, 1), rows = Box(there, here, 2);
  const CUDA_MEMCPY3D within = Box(here + 64, here, 1);
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr, of_rows = nullptr;
  MUST(cuGraphCreate(&graph, 0));
  MUST(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &within, context_[0]));
  EXPECT_EQ(cuGraphMemcpyNodeSetParams(node, &row), CUDA_SUCCESS);
  MUST(cuGraphInstantiate(&exec, graph, 0));
  EXPECT_EQ(cuGraphExecMemcpyNodeSetParams(exec, node, &other_row, context_[0]), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphExecMemcpyNodeSetParams(exec, node, &rows, context_[0]), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphExecMemcpyNodeSetParams(exec, node, &within, context_[0]), CUDA_ERROR_INVALID_VALUE);
  CUgraphNodeParams params = {};
  params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  params.memcpy.copyParams = rows;
  params.memcpy.copyCtx = context_[0];
  EXPECT_EQ(cuGraphExecNodeSetParams(exec, node, &params), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphNodeSetParams(node, &params), CUDA_SUCCESS);
  CUDA_MEMCPY3D now = {};
  EXPECT_EQ(cuGraphMemcpyNodeGetParams(node, &now), CUDA_SUCCESS);
  EXPECT_EQ(now.Height, 2u);
  MUST(cuGraphInstantiate(&of_rows, graph, 0));
  EXPECT_EQ(cuGraphExecMemcpyNodeSetParams(of_rows, node, &row, context_[0]), CUDA_ERROR_INVALID_VALUE);
  MUST(cuGraphExecDestroy(of_rows));
  MUST(cuGraphExecDestroy(exec));
  MUST(cuGraphDestroy(graph));
}

// Changes of a child graph show in its node; the graph belongs to the node.
TEST_F(PeerTest, TheGraphOfAChild) {
  const CUdeviceptr here = Alloc(0);
  Use(0);
  const CUDA_MEMCPY3D row = Box(here + 64, here, 1), wrong = Box(here + 64, here + 128, 1);
  CUgraph graph = nullptr, child = nullptr, inside = nullptr;
  CUgraphNode copy = nullptr, node = nullptr, only = nullptr, other = nullptr;
  CUgraphExec exec = nullptr;
  MUST(cuGraphCreate(&graph, 0));
  MUST(cuGraphCreate(&child, 0));
  MUST(cuGraphAddMemcpyNode(&copy, child, nullptr, 0, &wrong, context_[0]));
  MUST(cuGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
  MUST(cuGraphDestroy(child));
  MUST(cuGraphChildGraphNodeGetGraph(node, &inside));
  size_t count = 1;
  MUST(cuGraphGetNodes(inside, &only, &count));
  EXPECT_EQ(count, 1u);
  MUST(cuGraphAddMemcpyNode(&other, inside, nullptr, 0, &row, context_[0]));
  EXPECT_EQ(cuGraphDestroyNode(only), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(inside), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphChildGraphNodeGetGraph(other, &inside), CUDA_ERROR_INVALID_VALUE);
  MUST(cuMemsetD8(here, 5, 64));
  MUST(cuMemsetD8(here + 64, 6, 128));
  MUST(cuGraphInstantiate(&exec, graph, 0));
  MUST(cuGraphLaunch(exec, nullptr));
  MUST(cuCtxSynchronize());
  unsigned char byte = 0;
  MUST(cuMemcpyDtoH(&byte, here + 64, 1));
  EXPECT_EQ(byte, 5);
  MUST(cuGraphExecDestroy(exec));
  MUST(cuGraphDestroy(graph));
}

}  // namespace
}  // namespace simgpu_test
