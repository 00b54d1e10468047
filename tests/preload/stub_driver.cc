// See stub_driver.h. cuda.h makes macros of most driver names, so each function has its own name and an assembler label
// with the exported one.
#include "tests/preload/stub_driver.h"

#include <cuda.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "preload/hooks/hook_list.h"
#include "preload/hooks/work_list.h"

namespace {

struct Context {
  int device;
  int references;
  bool alive;
};
struct State {
  std::recursive_mutex mutex;
  std::map<std::string, long> counts, lookups;
  std::set<std::tuple<std::string, int, cuuint64_t>> asked;  // of cuGetProcAddress
  std::map<CUdeviceptr, size_t> blocks;                      // cuMemAlloc
  std::set<CUdeviceptr> async_blocks;
  std::map<CUstream, bool> capturing;
  std::map<CUstream, unsigned> flags;
  std::set<CUmemGenericAllocationHandle> chunks;
  int handle_types = 0;  // of the last chunk
  bool refuse_handle_types = false;
  Context primary[2] = {{0, 0, false}, {1, 0, false}};
  std::vector<Context*> created;
  CUmemoryPool current_pool = reinterpret_cast<CUmemoryPool>(0x1001);
  uint64_t next_block = 0x10'0000'0000, next_reserve = 0x7000'0000'0000, next_handle = 0x100, mapped = 0;
  uint64_t work[11] = {};
  long refused_syncs = 0;
  bool deinitialized = false, no_device = false;
};
State& S() {
  static State* state = new State;  // usable until the very end of the process
  return *state;
}
constexpr uint64_t kChunk = 2 << 20;
thread_local std::vector<Context*> stack;

struct Entry {
  const char *symbol, *base;
  int version;
  cuuint64_t stream;  // 1 legacy, 2 per thread
  void* function;
};
std::vector<Entry>& Entries() {
  static auto* entries = new std::vector<Entry>;
  return *entries;
}
struct Register {
  Register(const char* symbol, const char* base, int version, cuuint64_t stream, void* function) {
    Entries().push_back({symbol, base, version, stream, function});
  }
};

bool AnyCapturing() {
  for (const auto& [stream, on] : S().capturing) {
    if (on) return true;
  }
  return false;
}
Context* Current() { return stack.empty() || stack.back() == nullptr ? nullptr : stack.back(); }

std::atomic<const char*> awaited{nullptr};
std::atomic<void (*)()> meanwhile{nullptr};

void Meanwhile(const char* symbol) {
  const char* name = awaited.load();
  if (name == nullptr || strcmp(name, symbol) != 0 || !awaited.compare_exchange_strong(name, nullptr)) return;
  meanwhile.load()();
}

}  // namespace

// Every function: the concurrent action, lock, count, CUDA_ERROR_DEINITIALIZED on request.
#define ENTER(symbol)                                     \
  Meanwhile(#symbol);                                     \
  std::unique_lock<std::recursive_mutex> lock(S().mutex); \
  S().counts[#symbol]++;                                  \
  if (S().deinitialized) return CUDA_ERROR_DEINITIALIZED;
#define STUB(symbol, base, version, stream, parameters)                                                       \
  STUB_API CUresult Stub_##symbol parameters __asm__(#symbol);                                                \
  static Register register_##symbol(#symbol, base, version, stream, reinterpret_cast<void*>(&Stub_##symbol)); \
  STUB_API CUresult Stub_##symbol parameters

STUB(cuInit, "cuInit", 2000, 1, (unsigned)) {
  ENTER(cuInit)
  return S().no_device ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}
STUB(cuDriverGetVersion, "cuDriverGetVersion", 2020, 1, (int* version)) {
  ENTER(cuDriverGetVersion)
  *version = 13000;
  return CUDA_SUCCESS;
}
STUB(cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000, 1, (int* value, CUdevice_attribute, CUdevice)) {
  ENTER(cuDeviceGetAttribute)
  *value = 1;
  return CUDA_SUCCESS;
}
STUB(cuDeviceTotalMem_v2, "cuDeviceTotalMem", 3020, 1, (size_t * bytes, CUdevice)) {
  ENTER(cuDeviceTotalMem_v2)
  *bytes = 16ull << 30;
  return CUDA_SUCCESS;
}

STUB(cuMemGetInfo_v2, "cuMemGetInfo", 3020, 1, (size_t * free, size_t* total)) {
  ENTER(cuMemGetInfo_v2)
  *free = 10ull << 30;
  *total = 16ull << 30;
  return CUDA_SUCCESS;
}

// Contexts.
STUB(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, 1, (CUcontext * context, CUdevice device)) {
  ENTER(cuDevicePrimaryCtxRetain)
  S().primary[device].references++;
  S().primary[device].alive = true;
  *context = reinterpret_cast<CUcontext>(&S().primary[device]);
  return CUDA_SUCCESS;
}
STUB(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, 1, (CUdevice device)) {
  ENTER(cuDevicePrimaryCtxRelease_v2)
  if (S().primary[device].references == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--S().primary[device].references == 0) S().primary[device].alive = false;
  return CUDA_SUCCESS;
}
STUB(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, 1, (CUdevice device)) {
  ENTER(cuDevicePrimaryCtxReset_v2)
  S().primary[device].alive = false;
  return CUDA_SUCCESS;
}
STUB(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 7000, 1, (CUdevice device)) {
  ENTER(cuDevicePrimaryCtxRelease)
  return Stub_cuDevicePrimaryCtxRelease_v2(device);
}
STUB(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", 7000, 1, (CUdevice device)) {
  ENTER(cuDevicePrimaryCtxReset)
  return Stub_cuDevicePrimaryCtxReset_v2(device);
}
STUB(cuDevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", 7000, 1,
     (CUdevice device, unsigned* flags, int* active)) {
  ENTER(cuDevicePrimaryCtxGetState)
  *flags = 0;
  *active = S().primary[device].alive;
  lock.unlock();
  Meanwhile("cuDevicePrimaryCtxGetState answered");
  return CUDA_SUCCESS;
}
STUB(cuCtxCreate_v2, "cuCtxCreate", 3020, 1, (CUcontext * context, unsigned, CUdevice device)) {
  ENTER(cuCtxCreate_v2)
  S().created.push_back(new Context{device, 1, true});
  *context = reinterpret_cast<CUcontext>(S().created.back());
  stack.push_back(S().created.back());
  return CUDA_SUCCESS;
}
STUB(cuCtxDestroy_v2, "cuCtxDestroy", 4000, 1, (CUcontext context)) {
  ENTER(cuCtxDestroy_v2)
  auto* c = reinterpret_cast<Context*>(context);
  if (!c->alive) return CUDA_ERROR_INVALID_CONTEXT;
  c->alive = false;
  if (Current() == c) stack.pop_back();
  return CUDA_SUCCESS;
}
STUB(cuCtxGetCurrent, "cuCtxGetCurrent", 4000, 1, (CUcontext * context)) {
  ENTER(cuCtxGetCurrent)
  *context = reinterpret_cast<CUcontext>(Current());
  return CUDA_SUCCESS;
}
STUB(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, 1, (CUcontext context)) {
  ENTER(cuCtxSetCurrent)
  if (stack.empty()) stack.push_back(nullptr);
  stack.back() = reinterpret_cast<Context*>(context);
  return CUDA_SUCCESS;
}
STUB(cuCtxPushCurrent_v2, "cuCtxPushCurrent", 4000, 1, (CUcontext context)) {
  ENTER(cuCtxPushCurrent_v2)
  if (!reinterpret_cast<Context*>(context)->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  stack.push_back(reinterpret_cast<Context*>(context));
  return CUDA_SUCCESS;
}
STUB(cuCtxPopCurrent_v2, "cuCtxPopCurrent", 4000, 1, (CUcontext * context)) {
  ENTER(cuCtxPopCurrent_v2)
  *context = reinterpret_cast<CUcontext>(stack.back());
  stack.pop_back();
  return CUDA_SUCCESS;
}
STUB(cuCtxGetDevice, "cuCtxGetDevice", 2000, 1, (CUdevice * device)) {
  ENTER(cuCtxGetDevice)
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = Current()->device;
  return CUDA_SUCCESS;
}
STUB(cuCtxSynchronize, "cuCtxSynchronize", 2000, 1, ()) {
  ENTER(cuCtxSynchronize)
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!AnyCapturing()) return CUDA_SUCCESS;
  S().refused_syncs++;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}
STUB(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", 10010, 1, (CUstreamCaptureMode * mode)) {
  ENTER(cuThreadExchangeStreamCaptureMode)
  static thread_local CUstreamCaptureMode own = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::swap(own, *mode);
  return CUDA_SUCCESS;
}

// Streams.
static CUresult NewStream(CUstream* stream, unsigned flags) {
  *stream = reinterpret_cast<CUstream>(new Context*(Current()));
  S().capturing[*stream] = false;
  S().flags[*stream] = flags;
  return CUDA_SUCCESS;
}
STUB(cuStreamCreate, "cuStreamCreate", 2000, 1, (CUstream * stream, unsigned flags)) {
  ENTER(cuStreamCreate)
  return NewStream(stream, flags);
}
STUB(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", 5050, 1, (CUstream * stream, unsigned flags, int)) {
  ENTER(cuStreamCreateWithPriority)
  return NewStream(stream, flags);
}
STUB(cuStreamDestroy_v2, "cuStreamDestroy", 4000, 1, (CUstream stream)) {
  ENTER(cuStreamDestroy_v2)
  return S().capturing.erase(stream) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
STUB(cuStreamGetCtx, "cuStreamGetCtx", 9020, 1, (CUstream stream, CUcontext* context)) {
  ENTER(cuStreamGetCtx)
  *context = reinterpret_cast<CUcontext>(*reinterpret_cast<Context**>(stream));
  return CUDA_SUCCESS;
}
STUB(cuStreamSynchronize, "cuStreamSynchronize", 2000, 1, (CUstream stream)) {
  ENTER(cuStreamSynchronize)
  if (!S().capturing[stream]) return CUDA_SUCCESS;
  S().refused_syncs++;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}
STUB(cuStreamGetFlags, "cuStreamGetFlags", 5050, 1, (CUstream stream, unsigned* flags)) {
  ENTER(cuStreamGetFlags)
  *flags = S().flags[stream];
  return CUDA_SUCCESS;
}
// Events. What would break a capture is refused and counted.
static bool BreaksCapture(CUstream stream) {
  const bool legacy = stream == nullptr || stream == CU_STREAM_LEGACY;
  return legacy ? AnyCapturing() : S().capturing[stream];
}
STUB(cuEventCreate, "cuEventCreate", 2000, 1, (CUevent * event, unsigned)) {
  ENTER(cuEventCreate)
  *event = reinterpret_cast<CUevent>(new Context*(Current()));
  return CUDA_SUCCESS;
}
STUB(cuEventRecord, "cuEventRecord", 2000, 1, (CUevent, CUstream stream)) {
  ENTER(cuEventRecord)
  if (!BreaksCapture(stream)) return CUDA_SUCCESS;
  S().refused_syncs++;
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}
STUB(cuStreamWaitEvent, "cuStreamWaitEvent", 3020, 1, (CUstream stream, CUevent, unsigned)) {
  ENTER(cuStreamWaitEvent)
  if (!BreaksCapture(stream)) return CUDA_SUCCESS;
  S().refused_syncs++;
  return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
}
STUB(cuEventSynchronize, "cuEventSynchronize", 2000, 1, (CUevent)) {
  ENTER(cuEventSynchronize)
  return CUDA_SUCCESS;
}
STUB(cuStreamIsCapturing, "cuStreamIsCapturing", 10000, 1, (CUstream stream, CUstreamCaptureStatus* status)) {
  ENTER(cuStreamIsCapturing)
  *status = S().capturing[stream] ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
STUB(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010, 1, (CUstream stream, CUstreamCaptureMode)) {
  ENTER(cuStreamBeginCapture_v2)
  if (stream == nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  S().capturing[stream] = true;
  return CUDA_SUCCESS;
}
STUB(cuStreamEndCapture, "cuStreamEndCapture", 10000, 1, (CUstream stream, CUgraph* graph)) {
  ENTER(cuStreamEndCapture)
  if (!S().capturing[stream]) return CUDA_ERROR_ILLEGAL_STATE;
  S().capturing[stream] = false;
  *graph = reinterpret_cast<CUgraph>(0x2000);
  return CUDA_SUCCESS;
}
STUB(cuStreamBeginCapture, "cuStreamBeginCapture", 10000, 1, (CUstream stream)) {
  ENTER(cuStreamBeginCapture)
  return Stub_cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}
STUB(cuStreamBeginCapture_ptsz, "cuStreamBeginCapture", 10000, 2, (CUstream stream)) {
  ENTER(cuStreamBeginCapture_ptsz)
  return Stub_cuStreamBeginCapture_v2(stream == nullptr ? CU_STREAM_PER_THREAD : stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}
STUB(cuStreamBeginCapture_v2_ptsz, "cuStreamBeginCapture", 10010, 2, (CUstream stream, CUstreamCaptureMode mode)) {
  ENTER(cuStreamBeginCapture_v2_ptsz)
  return Stub_cuStreamBeginCapture_v2(stream == nullptr ? CU_STREAM_PER_THREAD : stream, mode);
}
STUB(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph", 12030, 1,
     (CUstream stream, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, size_t, CUstreamCaptureMode mode)) {
  ENTER(cuStreamBeginCaptureToGraph)
  return Stub_cuStreamBeginCapture_v2(stream, mode);
}
STUB(cuStreamBeginCaptureToGraph_ptsz, "cuStreamBeginCaptureToGraph", 12030, 2,
     (CUstream stream, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, size_t, CUstreamCaptureMode mode)) {
  ENTER(cuStreamBeginCaptureToGraph_ptsz)
  return Stub_cuStreamBeginCapture_v2(stream == nullptr ? CU_STREAM_PER_THREAD : stream, mode);
}
STUB(cuStreamEndCapture_ptsz, "cuStreamEndCapture", 10000, 2, (CUstream stream, CUgraph* graph)) {
  ENTER(cuStreamEndCapture_ptsz)
  return Stub_cuStreamEndCapture(stream == nullptr ? CU_STREAM_PER_THREAD : stream, graph);
}

// Memory.
static CUresult NewBlock(CUdeviceptr* address, size_t bytes) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *address = S().next_block;
  S().next_block += (bytes + 511) / 512 * 512;
  S().blocks[*address] = bytes;
  return CUDA_SUCCESS;
}
STUB(cuMemAlloc, "cuMemAlloc", 2000, 1, (unsigned* address, unsigned)) {  // the 32-bit first version
  ENTER(cuMemAlloc)
  *address = 0x1234;
  return CUDA_SUCCESS;
}
STUB(cuMemFree, "cuMemFree", 2000, 1, (unsigned)) {
  ENTER(cuMemFree)
  return CUDA_SUCCESS;
}
STUB(cuMemAlloc_v2, "cuMemAlloc", 3020, 1, (CUdeviceptr * address, size_t bytes)) {
  ENTER(cuMemAlloc_v2)
  return NewBlock(address, bytes);
}
STUB(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, 1,
     (CUdeviceptr * address, size_t* pitch, size_t width, size_t height, unsigned)) {
  ENTER(cuMemAllocPitch_v2)
  *pitch = (width + 767) / 768 * 768;  // an unusual pitch
  return NewBlock(address, *pitch * height);
}
STUB(cuMemFree_v2, "cuMemFree", 3020, 1, (CUdeviceptr address)) {
  ENTER(cuMemFree_v2)
  if (address == 0) return CUDA_SUCCESS;
  return S().blocks.erase(address) + S().async_blocks.erase(address) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
STUB(cuMemGetAddressRange_v2, "cuMemGetAddressRange", 3020, 1,
     (CUdeviceptr * base, size_t* size, CUdeviceptr address)) {
  ENTER(cuMemGetAddressRange_v2)
  if (S().blocks.count(address) == 0) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = address;
  if (size) *size = S().blocks[address];
  return CUDA_SUCCESS;
}
static CUresult NewAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  if (reinterpret_cast<uintptr_t>(stream) <= 2 && Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  *address = S().next_block;
  S().next_block += (bytes + 511) / 512 * 512;
  S().async_blocks.insert(*address);
  return CUDA_SUCCESS;
}
static CUresult FreeAsync(CUdeviceptr address) {
  return S().async_blocks.erase(address) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
STUB(cuMemAllocAsync, "cuMemAllocAsync", 11020, 1, (CUdeviceptr * address, size_t bytes, CUstream stream)) {
  ENTER(cuMemAllocAsync)
  return NewAsync(address, bytes, stream);
}
STUB(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, 2, (CUdeviceptr * address, size_t bytes, CUstream stream)) {
  ENTER(cuMemAllocAsync_ptsz)
  return NewAsync(address, bytes, stream);
}
STUB(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, 1,
     (CUdeviceptr * address, size_t bytes, CUmemoryPool, CUstream stream)) {
  ENTER(cuMemAllocFromPoolAsync)
  return NewAsync(address, bytes, stream);
}
STUB(cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", 11020, 2,
     (CUdeviceptr * address, size_t bytes, CUmemoryPool, CUstream stream)) {
  ENTER(cuMemAllocFromPoolAsync_ptsz)
  return NewAsync(address, bytes, stream);
}
STUB(cuMemFreeAsync, "cuMemFreeAsync", 11020, 1, (CUdeviceptr address, CUstream)) {
  ENTER(cuMemFreeAsync)
  return FreeAsync(address);
}
STUB(cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, 2, (CUdeviceptr address, CUstream)) {
  ENTER(cuMemFreeAsync_ptsz)
  return FreeAsync(address);
}
STUB(cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", 11020, 1, (CUmemoryPool * pool, CUdevice)) {
  ENTER(cuDeviceGetDefaultMemPool)
  *pool = reinterpret_cast<CUmemoryPool>(0x1001);
  return CUDA_SUCCESS;
}
STUB(cuDeviceGetMemPool, "cuDeviceGetMemPool", 11020, 1, (CUmemoryPool * pool, CUdevice)) {
  ENTER(cuDeviceGetMemPool)
  *pool = S().current_pool;
  return CUDA_SUCCESS;
}
STUB(cuDeviceSetMemPool, "cuDeviceSetMemPool", 11020, 1, (CUdevice, CUmemoryPool pool)) {
  ENTER(cuDeviceSetMemPool)
  S().current_pool = pool;
  return CUDA_SUCCESS;
}
STUB(cuMemSetMemPool, "cuMemSetMemPool", 13000, 1, (CUmemLocation*, CUmemAllocationType, CUmemoryPool pool)) {
  ENTER(cuMemSetMemPool)
  S().current_pool = pool;
  return CUDA_SUCCESS;
}

// No memory at first; then only for a log buffer of 1024 bytes. The length of the log goes out where its size came in.
STUB(cuModuleLoadDataEx, "cuModuleLoadDataEx", 2010, 1,
     (CUmodule * module, const void*, unsigned count, CUjit_option*, void** values)) {
  ENTER(cuModuleLoadDataEx)
  const bool first = S().counts["cuModuleLoadDataEx"] == 1;
  const bool as_given = count == 1 && values[0] == reinterpret_cast<void*>(1024);
  if (count == 1) values[0] = nullptr;
  if (first || !as_given) return CUDA_ERROR_OUT_OF_MEMORY;
  *module = reinterpret_cast<CUmodule>(0x3000);
  return CUDA_SUCCESS;
}

// Virtual memory management.
STUB(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity", 10020, 1,
     (size_t * bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags)) {
  ENTER(cuMemGetAllocationGranularity)
  *bytes = kChunk;
  return CUDA_SUCCESS;
}
STUB(cuMemAddressReserve, "cuMemAddressReserve", 10020, 1,
     (CUdeviceptr * base, size_t bytes, size_t, CUdeviceptr, unsigned long long)) {
  ENTER(cuMemAddressReserve)
  *base = S().next_reserve;
  S().next_reserve += ((bytes >> 40) + 1) << 40;  // so that the tests can tell reservations apart
  return CUDA_SUCCESS;
}
STUB(cuMemAddressFree, "cuMemAddressFree", 10020, 1, (CUdeviceptr, size_t)) {
  ENTER(cuMemAddressFree)
  return CUDA_SUCCESS;
}
STUB(cuMemCreate, "cuMemCreate", 10020, 1,
     (CUmemGenericAllocationHandle * handle, size_t, const CUmemAllocationProp* prop, unsigned long long)) {
  ENTER(cuMemCreate)
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  S().handle_types = static_cast<int>(prop->requestedHandleTypes);
  if (S().refuse_handle_types && S().handle_types != 0) return CUDA_ERROR_NOT_SUPPORTED;
  S().chunks.insert(*handle = ++S().next_handle);
  return CUDA_SUCCESS;
}
STUB(cuMemRelease, "cuMemRelease", 10020, 1, (CUmemGenericAllocationHandle handle)) {
  ENTER(cuMemRelease)
  return S().chunks.erase(handle) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
STUB(cuMemMap, "cuMemMap", 10020, 1,
     (CUdeviceptr, size_t bytes, size_t, CUmemGenericAllocationHandle, unsigned long long)) {
  ENTER(cuMemMap)
  S().mapped += bytes / kChunk;
  return CUDA_SUCCESS;
}
STUB(cuMemUnmap, "cuMemUnmap", 10020, 1, (CUdeviceptr, size_t bytes)) {
  ENTER(cuMemUnmap)
  S().mapped -= bytes / kChunk;
  return CUDA_SUCCESS;
}
STUB(cuMemSetAccess, "cuMemSetAccess", 10020, 1, (CUdeviceptr, size_t, const CUmemAccessDesc*, size_t)) {
  ENTER(cuMemSetAccess)
  return CUDA_SUCCESS;
}

// Work: all alike. What lies on the stack beyond a function's own parameters is read too, and means nothing then. The
// symbol is only pasted and quoted here: handed to another macro, cuda.h's would change it.
static CUresult Work(const char* symbol, const uint64_t* arguments) {
  std::lock_guard<std::recursive_mutex> lock(S().mutex);
  S().counts[symbol]++;
  if (S().deinitialized) return CUDA_ERROR_DEINITIALIZED;
  memcpy(S().work, arguments, sizeof(S().work));
  return CUDA_SUCCESS;
}
#define STUB_WORK(symbol, base, version, stream, where)                                                           \
  STUB_API CUresult Stub_##symbol(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, \
                                  uint64_t, uint64_t, uint64_t) __asm__(#symbol);                                 \
  static Register register_##symbol(#symbol, base, version, stream, reinterpret_cast<void*>(&Stub_##symbol));     \
  CUresult Stub_##symbol(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,      \
                         uint64_t h, uint64_t i, uint64_t j, uint64_t k) {                                        \
    const uint64_t all[11] = {a, b, c, d, e, f, g, h, i, j, k};                                                   \
    return Work(#symbol, all);                                                                                    \
  }
HOTPACK_WORK(STUB_WORK)

// With STUB_ALL_HOOKS, look-ups also find the hooked functions that this stub does not imitate. These refuse.
namespace {
enum HookNumber : int {
#define STUB_NUMBER(symbol, ...) kHook_##symbol,
  HOTPACK_HOOKS(STUB_NUMBER)
#undef STUB_NUMBER
};
template <int number>
CUresult Refuse() {
  static std::atomic<int> calls{0};  // one function for each number
  ++calls;
  return CUDA_ERROR_NOT_SUPPORTED;
}
}  // namespace
__attribute__((constructor)) static void RegisterOtherHooks() {
  if (getenv("STUB_ALL_HOOKS") == nullptr) return;
#define STUB_REFUSE(symbol, base, version, stream, ...) \
  if (stub_real(#symbol) == nullptr)                    \
    Entries().push_back({#symbol, base, version, stream, reinterpret_cast<void*>(&Refuse<kHook_##symbol>)});
  HOTPACK_HOOKS(STUB_REFUSE)
#undef STUB_REFUSE
}

// Look-up: the highest variant that is not above the request, the kind of default stream that was asked for if there is
// one of that kind.
static CUresult LookUp(const char* name, void** function, int version, cuuint64_t flags) {
  S().asked.insert({name, version, flags});
  S().lookups[name]++;
  S().lookups[""]++;
  const Entry* best = nullptr;
  for (const Entry& entry : Entries()) {
    if (strcmp(entry.base, name) != 0 || entry.version > version || (entry.stream == 2 && flags != 2)) continue;
    const auto rank = [&](const Entry& e) { return e.version + (e.stream == flags ? 1 << 20 : 0); };
    if (best == nullptr || rank(entry) > rank(*best)) best = &entry;
  }
  if (best == nullptr) return CUDA_ERROR_NOT_FOUND;
  *function = best->function;
  return CUDA_SUCCESS;
}
STUB(cuGetProcAddress, "cuGetProcAddress", 11030, 1,
     (const char* name, void** function, int version, cuuint64_t flags)) {
  ENTER(cuGetProcAddress)
  return LookUp(name, function, version, flags);
}
STUB(cuGetProcAddress_v2, "cuGetProcAddress", 12000, 1,
     (const char* name, void** function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult* status)) {
  ENTER(cuGetProcAddress_v2)
  const CUresult result = LookUp(name, function, version, flags);
  if (status) *status = result == CUDA_SUCCESS ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return result;
}

long stub_count(const char* symbol) {
  std::lock_guard<std::recursive_mutex> lock(S().mutex);
  return S().counts[symbol];
}
long stub_lookups(const char* base) {
  std::lock_guard<std::recursive_mutex> lock(S().mutex);
  return S().lookups[base];
}
void stub_each_lookup(void (*visit)(const char* base, int version, uint64_t flags, const char* symbol)) {
  const auto asked = S().asked;  // visit() may look up more
  for (const auto& [name, version, flags] : asked) {
    void* function = nullptr;
    const char* symbol = nullptr;
    if (LookUp(name.c_str(), &function, version, flags) == CUDA_SUCCESS) {
      for (const Entry& entry : Entries()) {
        if (entry.function == function) symbol = entry.symbol;
      }
    }
    visit(name.c_str(), version, flags, symbol);
  }
}
void* stub_real(const char* symbol) {
  for (const Entry& entry : Entries()) {
    if (strcmp(entry.symbol, symbol) == 0) return entry.function;
  }
  return nullptr;
}
const uint64_t* stub_last_work() { return S().work; }
long stub_syncs_while_capturing() { return S().refused_syncs; }
int stub_handle_types() { return S().handle_types; }
void stub_refuse_handle_types(bool refuse) { S().refuse_handle_types = refuse; }
long stub_chunks() { return static_cast<long>(S().chunks.size()); }
long stub_mapped() { return static_cast<long>(S().mapped); }
void stub_deinitialize() { S().deinitialized = true; }
extern "C" {
__attribute__((visibility("default"))) uint32_t cudbgIpcFlag = 0;
}
uint32_t* stub_debugger_flag() { return &cudbgIpcFlag; }
void stub_before(const char* symbol, void (*call)()) {
  meanwhile = call;
  awaited = symbol;
}
void stub_fail_init() { S().no_device = true; }
