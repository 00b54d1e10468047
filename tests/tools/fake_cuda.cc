// A driver and a runtime in one small library, on host memory, for the tests of `hotpack replay`. They run its kernels,
// so that its checks can be made to fail.
//   FAKE_CUDA_FAIL_AT=N   the N-th allocation (from 1) fails
//   FAKE_CUDA_SHARE=1     every allocation returns the same memory
//   FAKE_CUDA_NO_MODULE=1 modules cannot be loaded
//   FAKE_CUDA_LOG=FILE    one line per relevant call, "malloc BYTES" and so on
#include <cuda.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

void Log(const char* format, ...) {
  // Both libraries, and a preloaded one, write to the same file.
  static int file =
      getenv("FAKE_CUDA_LOG") != nullptr ? open(getenv("FAKE_CUDA_LOG"), O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
  if (file < 0) return;
  char line[200];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  if (write(file, line, static_cast<size_t>(length)) != length) abort();
}

// Live blocks, reachable for leak checkers: a program may end with device memory that it has not freed.
std::set<void*>& Live() {
  static auto* live = new std::set<void*>;
  return *live;
}

void* Take(const char* call, size_t bytes, CUstream stream) {
  static const long fail_at = getenv("FAKE_CUDA_FAIL_AT") != nullptr ? atol(getenv("FAKE_CUDA_FAIL_AT")) : 0;
  static char shared[1 << 20];
  static long count = 0;
  Log("%s %zu stream %d\n", call, bytes, static_cast<int>(reinterpret_cast<intptr_t>(stream)));
  if (++count == fail_at) return nullptr;
  if (getenv("FAKE_CUDA_SHARE") != nullptr) return shared;
  return *Live().insert(malloc(bytes)).first;
}

void Give(const char* call, void* memory, CUstream stream) {
  Log("%s stream %d\n", call, static_cast<int>(reinterpret_cast<intptr_t>(stream)));
  if (getenv("FAKE_CUDA_SHARE") != nullptr) return;
  if (Live().erase(memory) == 0) abort();  // no live block
  free(memory);
}

const CUfunction kFill = reinterpret_cast<CUfunction>(1);
const CUfunction kCheck = reinterpret_cast<CUfunction>(2);

unsigned char Pattern(uint64_t id, uint64_t at) {
  return static_cast<unsigned char>(((id + 1) * 0x9E3779B97F4A7C15) >> (8 * (at % 8)));
}

}  // namespace

FAKE CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
FAKE CUresult cuDeviceGet(CUdevice* device, int) { return *device = 0, CUDA_SUCCESS; }
FAKE CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) { return *context = nullptr, CUDA_SUCCESS; }
FAKE CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
FAKE CUresult cuCtxSynchronize() { return Log("sync\n"), CUDA_SUCCESS; }
FAKE CUresult cuGetErrorString(CUresult, const char** text) { return *text = "out of memory", CUDA_SUCCESS; }
FAKE CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  *pointer = reinterpret_cast<CUdeviceptr>(Take("cuMemAlloc", bytes, nullptr));
  return *pointer != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
FAKE CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return Give("cuMemFree", reinterpret_cast<void*>(pointer), nullptr), CUDA_SUCCESS;
}
FAKE CUresult cuMemAllocHost_v2(void** pointer, size_t bytes) {
  return *pointer = *Live().insert(malloc(bytes)).first, CUDA_SUCCESS;
}
FAKE CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pointer, void* host, unsigned) {
  return *pointer = reinterpret_cast<CUdeviceptr>(host), CUDA_SUCCESS;
}
FAKE CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t count, CUstream) {
  Log("memset %zu\n", count);
  return memset(reinterpret_cast<void*>(at), value, count), CUDA_SUCCESS;
}
FAKE CUresult cuModuleLoadData(CUmodule*, const void*) {
  return getenv("FAKE_CUDA_NO_MODULE") != nullptr ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS;
}
FAKE CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  if (strcmp(name, "hotpack_replay_fill") != 0 && strcmp(name, "hotpack_replay_check") != 0)
    return CUDA_ERROR_NOT_FOUND;
  return *function = strcmp(name, "hotpack_replay_fill") == 0 ? kFill : kCheck, CUDA_SUCCESS;
}
FAKE CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             CUstream stream, void** parameters, void**) {
  auto word = [parameters](int i) { return *static_cast<uint64_t*>(parameters[i]); };
  auto* base = reinterpret_cast<unsigned char*>(word(0));
  uint64_t bytes = word(1), id = word(2), ends = std::min<uint64_t>(bytes, 8);
  Log("%s %llu stream %d\n", function == kFill ? "fill" : "check", static_cast<unsigned long long>(id),
      static_cast<int>(reinterpret_cast<intptr_t>(stream)));
  bool wrong = false;
  for (uint64_t i = 0; i < ends; ++i) {
    for (uint64_t at : {i, bytes - 1 - i}) {
      if (function == kFill) base[at] = Pattern(id, at);
      wrong = wrong || base[at] != Pattern(id, at);
    }
  }
  if (function == kCheck && wrong) ++*reinterpret_cast<uint32_t*>(word(3));
  return CUDA_SUCCESS;
}
FAKE CUresult cuStreamCreate(CUstream* stream, unsigned) {
  static intptr_t count = 0;
  return *stream = reinterpret_cast<CUstream>(++count), CUDA_SUCCESS;
}
FAKE CUresult cuEventCreate(CUevent* event, unsigned) { return *event = nullptr, CUDA_SUCCESS; }
FAKE CUresult cuEventRecord(CUevent, CUstream stream) {
  return Log("record stream %d\n", static_cast<int>(reinterpret_cast<intptr_t>(stream))), CUDA_SUCCESS;
}
FAKE CUresult cuStreamWaitEvent(CUstream stream, CUevent, unsigned) {
  return Log("wait stream %d\n", static_cast<int>(reinterpret_cast<intptr_t>(stream))), CUDA_SUCCESS;
}

FAKE int cudaMalloc(void** pointer, size_t bytes) {
  return *pointer = Take("cudaMalloc", bytes, nullptr), *pointer != nullptr ? 0 : 2;
}
FAKE int cudaFree(void* pointer) {
  if (pointer != nullptr) Give("cudaFree", pointer, nullptr);
  return 0;
}
FAKE int cudaMallocAsync(void** pointer, size_t bytes, CUstream stream) {
  return *pointer = Take("cudaMallocAsync", bytes, stream), *pointer != nullptr ? 0 : 2;
}
FAKE int cudaFreeAsync(void* pointer, CUstream stream) { return Give("cudaFreeAsync", pointer, stream), 0; }
FAKE const char* cudaGetErrorString(int) { return "out of memory"; }

// hotpack's C functions, when this library is preloaded.
FAKE void hotpack_step() { Log("step\n"); }
FAKE void hotpack_expect_steps() { Log("expect\n"); }
FAKE void hotpack_interrupt() { Log("interrupt\n"); }
FAKE void hotpack_resume() { Log("resume\n"); }
FAKE int hotpack_wait_plan(int timeout_ms) { return Log("wait_plan %d\n", timeout_ms), 1; }
