// The driver API of the simulated device, in one process.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "simgpu/checker.h"
#include "tests/simgpu/driver_fixture.h"

namespace simgpu_test {
namespace {

TEST_F(DriverTest, SaysWhatItIs) {
  int version = 0, count = 0, value = 0;
  EXPECT_EQ(cuDriverGetVersion(&version), CUDA_SUCCESS);
  EXPECT_EQ(version, 13000);
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0), CUDA_SUCCESS);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1), CUDA_ERROR_INVALID_DEVICE);
  const char* name = nullptr;
  EXPECT_EQ(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &name), CUDA_SUCCESS);
  EXPECT_STREQ(name, "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &name), CUDA_SUCCESS);
  EXPECT_STREQ(name, "out of memory");
  EXPECT_EQ(cuGetErrorName(static_cast<CUresult>(12345), &name), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverTest, CountsMemoryInPages) {
  const uint64_t before = Free();
  CUdeviceptr large = 0, small = 0, second = 0;
  EXPECT_EQ(cuMemAlloc(&large, 3 << 20), CUDA_SUCCESS);
  EXPECT_EQ(before - Free(), 2 * kPage);
  EXPECT_EQ(cuMemAlloc(&small, 1), CUDA_SUCCESS);
  EXPECT_EQ(before - Free(), 3 * kPage);
  EXPECT_EQ(cuMemAlloc(&second, 1000), CUDA_SUCCESS);  // shares the page
  EXPECT_EQ(before - Free(), 3 * kPage);
  EXPECT_EQ(small % 512, 0u);
  EXPECT_EQ(second, small + 512);
  for (CUdeviceptr p : {large, small, second}) EXPECT_EQ(cuMemFree(p), CUDA_SUCCESS);
  EXPECT_EQ(Free(), before);
}

TEST_F(DriverTest, CopiesBytes) {
  std::vector<char> in(5 << 20), out(in.size(), 'x');
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<char>(i * 7 + i / 251);
  CUdeviceptr a = 0, b = 0;
  ASSERT_EQ(cuMemAlloc(&a, in.size()), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc(&b, in.size()), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoD(a, in.data(), in.size()), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoD(b, a, in.size()), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH(out.data(), b, out.size()), CUDA_SUCCESS);
  EXPECT_EQ(in, out);
  EXPECT_EQ(cuMemsetD32(b + 4, 0x01020304, 2), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH(out.data(), b, 16), CUDA_SUCCESS);
  EXPECT_EQ(memcmp(out.data() + 4, "\4\3\2\1\4\3\2\1", 8), 0);
  EXPECT_EQ(out[3], in[3]);
  EXPECT_EQ(out[12], in[12]);
  EXPECT_EQ(cuMemsetD16(b + 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(a), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(b), CUDA_SUCCESS);
}

// What one write left is forgotten when a kernel is handed an address in it, and nothing else is.
TEST_F(DriverTest, ReadsZerosWhereAKernelMayHaveWritten) {
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAlloc(&p, kPage), CUDA_SUCCESS);
  std::vector<char> ones(4096, 1), out(8192, 9);
  const auto count_ones = [&](CUdeviceptr from, size_t bytes) {
    out.assign(out.size(), 9);
    EXPECT_EQ(cuMemcpyDtoH(out.data(), from, bytes), CUDA_SUCCESS);
    return std::count(out.begin(), out.end(), 1) - std::count(out.begin(), out.begin() + static_cast<long>(bytes), 9);
  };
  ASSERT_EQ(cuMemcpyHtoD(p, ones.data(), 4096), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8(p + 4096, 1, 4096), CUDA_SUCCESS);
  Touch(nullptr, p + kPage / 2);
  EXPECT_EQ(count_ones(p, 8192), 8192);
  Touch(nullptr, p + 100);
  EXPECT_EQ(count_ones(p, 8192), 4096);
  EXPECT_EQ(count_ones(p, 4096), 0);
  ASSERT_EQ(cuMemcpyDtoD(p + 8192, p + 4096, 2048), CUDA_SUCCESS);  // a copy of it is another write
  Touch(nullptr, p + 4096);
  EXPECT_EQ(count_ones(p + 4096, 4096), 0);
  EXPECT_EQ(count_ones(p + 8192, 4096), 2048);
  ASSERT_EQ(cuMemcpyHtoD(p, ones.data(), 4096), CUDA_SUCCESS);  // written since
  EXPECT_EQ(count_ones(p, 4096), 4096);
  ASSERT_EQ(cuMemcpyHtoD(p + 1024, ones.data(), 1024), CUDA_SUCCESS);  // in the middle of it
  Touch(nullptr, p);
  EXPECT_EQ(count_ones(p, 4096), 1024 + 2048) << "what lies behind the newer write is a part of its own";
  simgpuUse(nullptr, p + 1024, 512, 1);
  EXPECT_EQ(count_ones(p, 4096), 512 + 2048);
  simgpuUse(nullptr, p + 1536, 512, 0);  // only read
  EXPECT_EQ(count_ones(p, 4096), 512 + 2048);
  EXPECT_EQ(cuMemFree(p), CUDA_SUCCESS);
}

TEST_F(DriverTest, CopiesRows) {
  CUdeviceptr p = 0;
  size_t pitch = 0;
  ASSERT_EQ(cuMemAllocPitch(&p, &pitch, 100, 8, 4), CUDA_SUCCESS);
  EXPECT_EQ(pitch, 512u);
  std::vector<char> in(800), out(800);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<char>(i);
  CUDA_MEMCPY2D c = {};
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = in.data();
  c.srcPitch = 100;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = p;
  c.dstPitch = pitch;
  c.WidthInBytes = 100;
  c.Height = 8;
  EXPECT_EQ(cuMemcpy2D(&c), CUDA_SUCCESS);
  char byte = 0;
  EXPECT_EQ(cuMemcpyDtoH(&byte, p + 3 * pitch + 5, 1), CUDA_SUCCESS);
  EXPECT_EQ(byte, in[305]);
  std::swap(c.srcMemoryType, c.dstMemoryType);
  std::swap(c.srcPitch, c.dstPitch);
  c.srcDevice = p;
  c.dstHost = out.data();
  EXPECT_EQ(cuMemcpy2DAsync(&c, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(in, out);
  EXPECT_EQ(cuMemFree(p), CUDA_SUCCESS);
}

TEST_F(DriverTest, RefusesCopiesWhereNoMemoryIs) {
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAddressReserve(&p, kPage, 0, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuPointerGetAttribute(&p, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressFree(p, kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAlloc(nullptr, 8), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverTest, KnowsRangesAndPointers) {
  CUdeviceptr p = 0, base = 0;
  size_t bytes = 0;
  ASSERT_EQ(cuMemAlloc(&p, 5000), CUDA_SUCCESS);
  EXPECT_EQ(cuMemGetAddressRange(&base, &bytes, p + 4999), CUDA_SUCCESS);
  EXPECT_EQ(base, p);
  EXPECT_EQ(bytes, 5000u);
  EXPECT_EQ(cuMemGetAddressRange(&base, &bytes, p + 5000), CUDA_ERROR_NOT_FOUND);
  unsigned type = 0;
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), CUDA_SUCCESS);
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_DEVICE});
  void* host = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&host, 100, 0), CUDA_SUCCESS);
  memset(host, 1, 100);  // the host may use it
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(host)),
            CUDA_SUCCESS);
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_HOST});
  EXPECT_EQ(cuMemFreeHost(host), CUDA_SUCCESS);
  CUdeviceptr managed = 0;
  ASSERT_EQ(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  memset(reinterpret_cast<void*>(managed), 1, 100);
  EXPECT_EQ(cuMemFree(managed), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(p), CUDA_SUCCESS);
}

TEST_F(DriverTest, PoolsKeepMemoryUntilTheHostSynchronises) {
  const CUstream stream = NewStream();
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  const uint64_t before = Free();
  CUdeviceptr p = 0, q = 0;
  ASSERT_EQ(cuMemAllocAsync(&p, 3 << 20, stream), CUDA_SUCCESS);
  uint64_t used = 0, reserved = 0;
  EXPECT_EQ(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), CUDA_SUCCESS);
  EXPECT_EQ(used, 2 * kPage);
  ASSERT_EQ(cuMemFreeAsync(p, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(p + 512, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved), CUDA_SUCCESS);
  EXPECT_EQ(used, 0u);
  EXPECT_EQ(reserved, 2 * kPage);
  ASSERT_EQ(cuMemAllocAsync(&q, 3 << 20, stream), CUDA_SUCCESS);
  EXPECT_EQ(q, p);
  ASSERT_EQ(cuMemFreeAsync(q, stream), CUDA_SUCCESS);
  EXPECT_EQ(before - Free(), 2 * kPage);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(Free(), before);
  uint64_t threshold = 1 << 30;
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocAsync(&q, 3 << 20, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(q, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(before - Free(), 2 * kPage) << "kept, as the threshold asks";
  EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(Free(), before);
  threshold = 0;
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
}

TEST_F(DriverTest, KnowsItsKernels) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, kPtx), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleGetFunction(&function, module, "none"), CUDA_ERROR_NOT_FOUND);
  ASSERT_EQ(cuModuleGetFunction(&function, module, "many"), CUDA_SUCCESS);
  size_t offset = 9, bytes = 9;
  const size_t offsets[] = {0, 8, 16}, sizes[] = {8, 4, 8};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cuFuncGetParamInfo(function, i, &offset, &bytes), CUDA_SUCCESS);
    EXPECT_EQ(offset, offsets[i]);
    EXPECT_EQ(bytes, sizes[i]);
  }
  EXPECT_EQ(cuFuncGetParamInfo(function, 3, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuModuleGetFunction(&function, module, "both"), CUDA_SUCCESS);
  EXPECT_EQ(cuFuncGetParamInfo(function, 0, &offset, &bytes), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 24u);
  EXPECT_EQ(cuFuncGetParamInfo(function, 1, &offset, &bytes), CUDA_SUCCESS);
  EXPECT_EQ(offset, 24u);
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
  void* parameters[] = {&offset, &bytes};
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuModuleLoadData(&module, "not an image, and long enough to be looked at"), CUDA_ERROR_INVALID_IMAGE);
}

TEST_F(DriverTest, RunsHostFunctionsAndTimesEvents) {
  const CUstream stream = NewStream();
  int calls = 0;
  EXPECT_EQ(cuLaunchHostFunc(
                stream, [](void* data) { ++*static_cast<int*>(data); }, &calls),
            CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(calls, 1);
  CUevent a = nullptr, b = nullptr;
  ASSERT_EQ(cuEventCreate(&a, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&b, 0), CUDA_SUCCESS);
  float ms = -1;
  EXPECT_EQ(cuEventElapsedTime(&ms, a, b), CUDA_ERROR_INVALID_HANDLE) << "not recorded";
  EXPECT_EQ(cuEventRecord(a, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(b, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventElapsedTime(&ms, a, b), CUDA_SUCCESS);
  EXPECT_GE(ms, 0);
  EXPECT_EQ(cuEventDestroy(a), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy(a), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventDestroy(b), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(DriverTest, CapturesAndReplays) {
  const CUstream stream = NewStream(), side = NewStream();
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAlloc(&p, 64), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8(p, 0, 64), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  EXPECT_EQ(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(cuMemsetD8Async(p, 7, 64, stream), CUDA_SUCCESS);
  const CUevent fork = NewEvent();  // a second stream joins the capture
  EXPECT_EQ(cuEventRecord(fork, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(side, fork, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8Async(p + 32, 9, 16, side), CUDA_SUCCESS);
  char bytes[64] = {1};
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH(bytes, p, 64), CUDA_SUCCESS);
  EXPECT_EQ(bytes[0], 0) << "captured, not done";
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
  size_t nodes = 0;
  EXPECT_EQ(cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
  EXPECT_EQ(nodes, 2u);
  EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH(bytes, p, 64), CUDA_SUCCESS);
  EXPECT_EQ(bytes[0], 7);
  EXPECT_EQ(bytes[40], 9);
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(p), CUDA_SUCCESS);
}

TEST_F(DriverTest, ForbidsUnsafeCallsDuringAGlobalCapture) {
  const CUstream stream = NewStream();
  CUdeviceptr p = 0;
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  ASSERT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(cuMemAlloc(&p, 64), CUDA_SUCCESS);
  ASSERT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuMemFree(p), CUDA_SUCCESS);
  // Memory allocated while capturing belongs to the graph.
  const uint64_t before = Free();
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocAsync(&p, 4096, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(p, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(before - Free(), kPage);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(Free(), before);
}

TEST_F(DriverTest, PerThreadStreamsAreOneAThread) {
  unsigned long long mine = 0, again = 0, theirs = 0, legacy = 0;
  EXPECT_EQ(cuStreamGetId(CU_STREAM_PER_THREAD, &mine), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamGetId(CU_STREAM_PER_THREAD, &again), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamGetId(nullptr, &legacy), CUDA_SUCCESS);
  std::thread([&] {
    EXPECT_EQ(cuStreamGetId(CU_STREAM_PER_THREAD, &theirs), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamGetId(CU_STREAM_PER_THREAD, &theirs), CUDA_SUCCESS);
  }).join();
  EXPECT_EQ(mine, again);
  EXPECT_NE(mine, theirs);
  EXPECT_NE(mine, legacy);
}

TEST_F(DriverTest, ContextsOwnTheirMemory) {
  const uint64_t before = Free();
  CUcontext context = nullptr;
  ASSERT_EQ(cuCtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAlloc(&p, kPage), CUDA_SUCCESS);
  EXPECT_EQ(before - Free(), kPage);
  ASSERT_EQ(cuCtxDestroy(context), CUDA_SUCCESS);
  CUcontext current = nullptr;
  EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, context_);
  EXPECT_EQ(Free(), before);
  EXPECT_EQ(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(DriverTest, KnowsWhatItDoesNotSimulate) {
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR desc = {};
  EXPECT_EQ(cuArrayCreate(&array, &desc), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(DriverTest, HandlesForOtherProcesses) {
  CUipcMemHandle one = {}, again = {}, other = {};
  CUdeviceptr p = 0, of_pool = 0, opened = 0;
  ASSERT_EQ(cuMemAlloc(&p, kPage), CUDA_SUCCESS);
  ASSERT_EQ(cuIpcGetMemHandle(&one, p), CUDA_SUCCESS);
  ASSERT_EQ(cuIpcGetMemHandle(&again, p), CUDA_SUCCESS);
  EXPECT_EQ(memcmp(&one, &again, sizeof(one)), 0);
  EXPECT_EQ(cuIpcGetMemHandle(&again, p + 512), CUDA_ERROR_INVALID_VALUE);  // not its base
  EXPECT_EQ(cuIpcGetMemHandle(nullptr, p), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuIpcOpenMemHandle(&opened, one, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuIpcOpenMemHandle(&opened, other, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuMemFree(p), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc(&p, kPage), CUDA_SUCCESS);  // perhaps at the same address
  ASSERT_EQ(cuIpcGetMemHandle(&other, p), CUDA_SUCCESS);
  EXPECT_NE(memcmp(&one, &other, sizeof(one)), 0);
  EXPECT_EQ(cuMemFree(p), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocAsync(&of_pool, kPage, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuIpcGetMemHandle(&other, of_pool), CUDA_ERROR_INVALID_VALUE);
  CUcontext context = context_;
  EXPECT_EQ(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, of_pool), CUDA_SUCCESS);
  EXPECT_EQ(context, nullptr);
  EXPECT_EQ(cuMemFreeAsync(of_pool, nullptr), CUDA_SUCCESS);
}

}  // namespace
}  // namespace simgpu_test
