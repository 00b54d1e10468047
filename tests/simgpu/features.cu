// Functions other than launches that training programs and programs that inspect a GPU use: memory of all kinds,
// streams, events, attributes, libraries.
#include <cooperative_groups.h>
#include <cuda.h>

#include <cstring>
#include <vector>

#include "tests/simgpu/check.cuh"

__global__ void Scale(float* x, int n) {
  if (threadIdx.x < n) x[threadIdx.x] *= 2.0f;
}
__global__ void Together(float* x) {
  cooperative_groups::this_grid().sync();
  x[0] = 1.0f;
}
__global__ void Tiled(const __grid_constant__ CUtensorMap map, float* x) {
  x[0] = static_cast<float>(reinterpret_cast<const char*>(&map)[0]);
}
void Count(void* count) { ++*static_cast<int*>(count); }
void Called(cudaStream_t, cudaError_t, void* count) { ++*static_cast<int*>(count); }

cudaStream_t stream;
float* block;

void Streams() {
  int least, greatest, priority = 7;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t urgent;
  CHECK(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, greatest));
  CHECK(cudaStreamGetPriority(urgent, &priority));
  EXPECT(priority == greatest);
  cudaEvent_t start, end;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreateWithFlags(&end, cudaEventBlockingSync));
  CHECK(cudaEventRecord(start, stream));
  Scale<<<1, 32, 0, stream>>>(block, 3);
  CHECK(cudaEventRecord(end, stream));
  CHECK(cudaEventSynchronize(end));
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT(milliseconds >= 0 && milliseconds < 60000);
  int calls = 0;
  CHECK(cudaLaunchHostFunc(stream, Count, &calls));
  CHECK(cudaStreamAddCallback(stream, Called, &calls, 0));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(calls == 2);

  cudaStreamAttrValue value = {}, back = {};
  value.accessPolicyWindow.base_ptr = block;
  value.accessPolicyWindow.num_bytes = 1024;
  value.accessPolicyWindow.hitRatio = 1;
  CHECK(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value));
  CHECK(cudaStreamGetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &back));
  CHECK(cudaStreamCopyAttributes(urgent, stream));
  CHECK(cudaCtxResetPersistingL2Cache());
  CHECK(cudaStreamDestroy(urgent));
}

void HostMemory() {
  void *mapped, *pinned, *device;
  CHECK(cudaHostAlloc(&mapped, 4096, cudaHostAllocMapped | cudaHostAllocPortable));
  CHECK(cudaMallocHost(&pinned, 4096));
  CHECK(cudaHostGetDevicePointer(&device, mapped, 0));
  memset(mapped, 9, 4096);
  CHECK(cudaMemcpyAsync(block, mapped, 4096, cudaMemcpyHostToDevice, stream));
  CHECK(cudaMemcpy2DAsync(pinned, 64, block, 512, 64, 8, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(static_cast<char*>(pinned)[511] == 9);
  std::vector<char> pages(1 << 16, 4);
  CHECK(cudaHostRegister(pages.data(), pages.size(), cudaHostRegisterDefault));
  CHECK(cudaMemcpyAsync(block, pages.data(), pages.size(), cudaMemcpyDefault, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaHostUnregister(pages.data()));
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, pinned));
  EXPECT(attributes.type == cudaMemoryTypeHost);
  CHECK(cudaPointerGetAttributes(&attributes, block));
  EXPECT(attributes.type == cudaMemoryTypeDevice);
  CHECK(cudaPointerGetAttributes(&attributes, &attributes));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);
  CHECK(cudaFreeHost(mapped));
  CHECK(cudaFreeHost(pinned));
}

// `rows` of the box's layers are filled; the bytes behind them stay.
void Boxes() {
  const cudaExtent whole = make_cudaExtent(100, 10, 4);
  cudaPitchedPtr box;
  CHECK(cudaMalloc3D(&box, whole));
  CHECK(cudaMemset3D(box, 1, whole));
  CHECK(cudaMemset3DAsync(box, 2, make_cudaExtent(50, 5, 4), stream));
  CHECK(cudaStreamSynchronize(stream));
  std::vector<char> host(4000);
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = box;
  copy.dstPtr = make_cudaPitchedPtr(host.data(), 100, 100, 10);
  copy.extent = whole;
  copy.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaMemcpy3D(&copy));
  for (int z = 0; z < 4; ++z) {
    for (int y = 0; y < 10; ++y) {
      EXPECT(host[z * 1000 + y * 100 + 49] == (y < 5 ? 2 : 1));
      EXPECT(host[z * 1000 + y * 100 + 50] == 1);
    }
  }
  CHECK(cudaFree(box.ptr));
  size_t pitch;
  void* rows;
  CHECK(cudaMallocPitch(&rows, &pitch, 1000, 10));
  EXPECT(pitch >= 1000);
  CHECK(cudaFree(rows));
}

void Pools() {
  cudaMemPool_t pool, mine, again;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  unsigned long long keep = ~0ull, reserved = 0;
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  cudaMemLocation here = {};
  here.type = cudaMemLocationTypeDevice;
  CHECK(cudaMemGetDefaultMemPool(&again, &here, cudaMemAllocationTypePinned));
  EXPECT(again == pool);
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.location = here;
  CHECK(cudaMemPoolCreate(&mine, &props));
  void* part;
  CHECK(cudaMallocFromPoolAsync(&part, 1000, mine, stream));
  CHECK(cudaMemPoolGetAttribute(mine, cudaMemPoolAttrReservedMemCurrent, &reserved));
  EXPECT(reserved >= 1000);
  CHECK(cudaFreeAsync(part, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemPoolTrimTo(mine, 0));
  CHECK(cudaMemPoolGetAttribute(mine, cudaMemPoolAttrReservedMemCurrent, &reserved));
  EXPECT(reserved == 0);
  CHECK(cudaMemPoolDestroy(mine));
  float* managed;
  CHECK(cudaMallocManaged(&managed, 4096));
  managed[3] = 1.0f;
  CHECK(cudaMemPrefetchAsync(managed, 4096, here, 0, stream));
  CHECK(cudaMemAdvise(managed, 4096, cudaMemAdviseSetReadMostly, here));
  CHECK(cudaStreamAttachMemAsync(stream, managed, 0, cudaMemAttachGlobal));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(managed[3] == 1.0f);
  CHECK(cudaFree(managed));
}

void Launches() {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(2);
  config.blockDim = dim3(32);
  config.stream = stream;
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, Scale, block, 3));
  void* arguments[] = {&block};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(Together), dim3(1), dim3(32), arguments, 0, stream));
  int blocks = 0, grid = 0, size = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Scale, 128, 0));
  EXPECT(blocks > 0);
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &size, Scale));
  EXPECT(grid > 0 && size > 0);
  CHECK(cudaOccupancyMaxPotentialClusterSize(&size, Scale, &config));
  CHECK(cudaOccupancyMaxActiveClusters(&size, Scale, &config));
  CHECK(cudaFuncSetAttribute(Scale, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
}

// A launch with a tensor map uses the block that it describes. With `unordered` it is another stream's, without a wait.
void TensorMaps(bool unordered) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
  EXPECT(found == cudaDriverEntryPointSuccess);
  const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  const cuuint64_t dimensions[] = {64, 64}, strides[] = {256};
  const cuuint32_t box[] = {16, 16}, steps[] = {1, 1};
  CUtensorMap map;
  const auto try_encode = [&](cuuint32_t rank, void* address) {
    return encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, address, dimensions, strides, box, steps,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  EXPECT(try_encode(0, block) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(try_encode(6, block) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(try_encode(2, block + 1) == CUDA_ERROR_INVALID_VALUE);
  cudaStream_t other;
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  float *first, *second;
  CHECK(cudaMallocAsync(&first, 1 << 20, stream));
  Scale<<<1, 32, 0, stream>>>(first, 3);
  if (unordered) {
    CHECK(cudaFree(first));  // to the pool at once, and on to the next
  } else {
    CHECK(cudaFreeAsync(first, stream));
  }
  CHECK(cudaMallocAsync(&second, 1 << 20, other));
  EXPECT(try_encode(2, second) == CUDA_SUCCESS);
  Tiled<<<1, 32, 0, other>>>(map, block);
  CHECK(cudaGetLastError());
  CHECK(cudaFreeAsync(second, other));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaStreamDestroy(other));
}

void DeviceSettings() {
  CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 1 << 20));
  size_t limit = 0, free_bytes = 0, total = 0;
  CHECK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
  EXPECT(limit == 1 << 20);
  CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
  cudaFuncCache cache;
  CHECK(cudaDeviceGetCacheConfig(&cache));
  CHECK(cudaMemGetInfo(&free_bytes, &total));
  EXPECT(free_bytes < total);
  int version = 0, device = 9;
  CHECK(cudaDriverGetVersion(&version));
  EXPECT(version >= 13000);
  CHECK(cudaRuntimeGetVersion(&version));
  EXPECT(version == CUDART_VERSION);
  cudaDeviceProp wanted = {};
  CHECK(cudaChooseDevice(&device, &wanted));
  EXPECT(device == 0);
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, cudaEnableDefault, &found));
  EXPECT(function != nullptr && found == cudaDriverEntryPointSuccess);
  cudaIpcMemHandle_t handle;
  CHECK(cudaIpcGetMemHandle(&handle, block));
  void* opened = nullptr;
  EXPECT(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess) !=
         cudaSuccess);  // nowhere in this process
  cudaGetLastError();
}

// `file`: what nvcc -fatbin makes of this file.
void Libraries(const char* file) {
  cudaLibrary_t library;
  CHECK(cudaLibraryLoadFromFile(&library, file, nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned count = 0;
  CHECK(cudaLibraryGetKernelCount(&count, library));
  EXPECT(count == 3);
  cudaKernel_t kernels[3], scale;
  CHECK(cudaLibraryEnumerateKernels(kernels, 3, library));
  CHECK(cudaLibraryGetKernel(&scale, library, "_Z5ScalePfi"));
  EXPECT(scale == kernels[0] || scale == kernels[1] || scale == kernels[2]);
  EXPECT(cudaLibraryGetKernel(&scale, library, "Missing") == cudaErrorSymbolNotFound);
  cudaGetLastError();
  int n = 3;
  void* arguments[] = {&block, &n};
  CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(scale), dim3(1), dim3(32), arguments, 0, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaLibraryUnload(library));
}

int main(int argc, char** argv) {
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaMalloc(&block, 1 << 20));
  Streams();
  HostMemory();
  Boxes();
  Pools();
  Launches();
  TensorMaps(argc > 1 && strcmp(argv[1], "unordered") == 0);
  DeviceSettings();
  if (argc > 1 && strcmp(argv[1], "unordered") != 0) Libraries(argv[1]);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaDeviceReset());
  CHECK(cudaMalloc(&block, 1000));  // and the device can be used again
  Scale<<<1, 32>>>(block, 3);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(block));
  printf("done\n");
  return 0;
}
