// Contexts: one stack per thread, primary contexts counted by device.
#include <algorithm>
#include <atomic>

#include "simgpu/driver/api.h"
#include "simgpu/driver/work.h"

namespace simgpu {
namespace {

Context* From(CUcontext handle) { return reinterpret_cast<Context*>(handle); }
CUcontext To(Context* context) { return reinterpret_cast<CUcontext>(context); }

bool Alive(Driver& d, Context* context) { return d.contexts.contains(context) && context->alive; }

CUresult Create(CUcontext* result, unsigned flags, CUdevice device) {
  SIMGPU_ENTER(cuCtxCreate);
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device < 0 || device >= static_cast<int>(d.devices.size())) return CUDA_ERROR_INVALID_DEVICE;
  if (ThreadContexts().size == ContextStack::kMax) return CUDA_ERROR_OUT_OF_MEMORY;
  Context* context = CreateContext(d, device, flags);
  PushContext(context);
  *result = To(context);
  return CUDA_SUCCESS;
}

CUresult Synchronize(Driver& d, Context* context) {
  if (AnyCapture(d, context)) {
    CheckUnsafeCall(d);
    if (d.capture_rule != CaptureRule::kLenient) InvalidateCaptures(d, context);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  HostSawContext(d, context);
  return CUDA_SUCCESS;
}

}  // namespace

ContextStack& ThreadContexts() {
  static thread_local ContextStack stack = {};
  return stack;
}

bool PushContext(Context* context) {
  ContextStack& stack = ThreadContexts();
  if (stack.size == ContextStack::kMax) return false;
  stack.contexts[stack.size++] = context;
  return true;
}

Context* PopContext() {
  ContextStack& stack = ThreadContexts();
  return stack.size == 0 ? nullptr : stack.contexts[--stack.size];
}

Context* CurrentContext() {
  const ContextStack& stack = ThreadContexts();
  if (stack.size == 0 || !stack.contexts[stack.size - 1]->alive) return nullptr;
  return stack.contexts[stack.size - 1];
}

CUresult NoContextError() {
  return ThreadContexts().size > 0 ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
}

Context* CreateContext(Driver& d, int device, unsigned flags) {
  Context* context = new Context;
  context->device = device;
  context->flags = flags;
  context->id = d.NextId();
  context->group = static_cast<int>(context->id);
  context->legacy = CreateStream(d, context, 0, 0, StreamKind::kLegacy);
  d.contexts.insert(context);
  return context;
}

// The object itself stays: threads may still have it on their stacks.
void DestroyContext(Driver& d, Context* context) {
  if (context->parent == nullptr) HostSawFamily(d, context);
  d.checker.ForgetContext(context->id);  // blocks that an allocator gave out in it
  std::vector<Allocation*> mine;
  for (auto& [base, allocation] : d.memory.allocations()) {
    if (allocation.context == context && allocation.pool == nullptr && !allocation.graph) mine.push_back(&allocation);
  }
  for (Allocation* allocation : mine) {
    d.checker.Forget(allocation->base, allocation->base + allocation->bytes);
    d.memory.Free(allocation, &d.devices[allocation->device].physical);
  }
  for (auto it = d.streams.begin(); it != d.streams.end();) {
    Stream* stream = *it;
    if (stream->context != context) {
      ++it;
      continue;
    }
    d.order.RemoveStream(stream->order);
    if (stream->capture != nullptr) stream->capture->valid = false;
    if (context->parent != nullptr && stream != context->legacy) {  // green: the streams stay, of no use
      ++it;
      continue;
    }
    it = d.streams.erase(it);
    delete stream;
  }
  std::erase_if(d.events, [&](Event* event) {
    if (event->context != context) return false;
    delete event;
    return true;
  });
  d.contexts.erase(context);
  for (Context* other : d.contexts) other->peers.erase(context);
  context->alive = false;
}

SIMGPU_API cuCtxCreate(CUcontext* result, unsigned flags, CUdevice device) { return Create(result, flags, device); }
SIMGPU_API cuCtxCreate_v2(CUcontext* result, unsigned flags, CUdevice device) { return Create(result, flags, device); }
SIMGPU_API cuCtxCreate_v3(CUcontext* result, CUexecAffinityParam*, int, unsigned flags, CUdevice device) {
  return Create(result, flags, device);
}
SIMGPU_API cuCtxCreate_v4(CUcontext* result, CUctxCreateParams*, unsigned flags, CUdevice device) {
  return Create(result, flags, device);
}

static CUresult Destroy(CUcontext handle) {
  SIMGPU_ENTER(cuCtxDestroy);
  Context* context = From(handle);
  if (!Alive(d, context) || context->primary || context->parent != nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  DestroyContext(d, context);
  const ContextStack& stack = ThreadContexts();
  if (stack.size > 0 && stack.contexts[stack.size - 1] == context) PopContext();
  return CUDA_SUCCESS;
}
SIMGPU_API cuCtxDestroy(CUcontext handle) { return Destroy(handle); }
SIMGPU_API cuCtxDestroy_v2(CUcontext handle) { return Destroy(handle); }

static CUresult Push(CUcontext handle) {
  SIMGPU_ENTER(cuCtxPushCurrent);
  if (!Alive(d, From(handle))) return CUDA_ERROR_INVALID_CONTEXT;
  return PushContext(From(handle)) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
SIMGPU_API cuCtxPushCurrent(CUcontext handle) { return Push(handle); }
SIMGPU_API cuCtxPushCurrent_v2(CUcontext handle) { return Push(handle); }

static CUresult Pop(CUcontext* handle) {
  SIMGPU_ENTER(cuCtxPopCurrent);
  Context* top = PopContext();
  if (top == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (handle != nullptr) *handle = To(top);
  return CUDA_SUCCESS;
}
SIMGPU_API cuCtxPopCurrent(CUcontext* handle) { return Pop(handle); }
SIMGPU_API cuCtxPopCurrent_v2(CUcontext* handle) { return Pop(handle); }

SIMGPU_API cuCtxSetCurrent(CUcontext handle) {
  SIMGPU_ENTER(cuCtxSetCurrent);
  if (handle != nullptr && !Alive(d, From(handle))) return CUDA_ERROR_INVALID_CONTEXT;
  PopContext();
  if (handle != nullptr) PushContext(From(handle));
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetCurrent(CUcontext* handle) {
  SIMGPU_ENTER(cuCtxGetCurrent);
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *handle = To(CurrentContext());
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetDevice(CUdevice* device) {
  SIMGPU_ENTER(cuCtxGetDevice);
  SIMGPU_CONTEXT(context);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = context->device;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  SIMGPU_ENTER(cuCtxGetDevice);
  Context* context = handle == nullptr ? CurrentContext() : From(handle);
  if (!Alive(d, context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = context->device;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxSynchronize() {
  SIMGPU_ENTER(cuCtxSynchronize);
  SIMGPU_CONTEXT(context);
  return Synchronize(d, context);
}

SIMGPU_API cuCtxSynchronize_v2(CUcontext handle) {
  SIMGPU_ENTER(cuCtxSynchronize);
  Context* context = handle == nullptr ? CurrentContext() : From(handle);
  if (!Alive(d, context)) return CUDA_ERROR_INVALID_CONTEXT;
  return Synchronize(d, context);
}

SIMGPU_API cuCtxGetFlags(unsigned* flags) {
  SIMGPU_ENTER(cuCtxGetFlags);
  SIMGPU_CONTEXT(context);
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = context->flags;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxSetFlags(unsigned flags) {
  SIMGPU_ENTER(cuCtxSetFlags);
  SIMGPU_CONTEXT(context);
  context->flags = flags;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetId(CUcontext handle, unsigned long long* id) {
  SIMGPU_ENTER(cuCtxGetId);
  Context* context = handle == nullptr ? CurrentContext() : From(handle);
  if (!Alive(d, context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = context->id;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetApiVersion(CUcontext, unsigned* version) {
  SIMGPU_ENTER(cuCtxGetApiVersion);
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = 13000;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  SIMGPU_ENTER(cuCtxGetStreamPriorityRange);
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxSetLimit(CUlimit limit, size_t value) {
  SIMGPU_ENTER(cuCtxSetLimit);
  SIMGPU_CONTEXT(context);
  context->limits[limit] = value;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetLimit(size_t* value, CUlimit limit) {
  SIMGPU_ENTER(cuCtxGetLimit);
  SIMGPU_CONTEXT(context);
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto it = context->limits.find(limit);
  *value = it != context->limits.end() ? it->second : limit == CU_LIMIT_STACK_SIZE ? 1024 : 8 << 20;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetCacheConfig(CUfunc_cache* config) {
  SIMGPU_ENTER(cuCtxGetCacheConfig);
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = CU_FUNC_CACHE_PREFER_NONE;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxSetCacheConfig(CUfunc_cache) {
  SIMGPU_ENTER(cuCtxSetCacheConfig);
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxResetPersistingL2Cache() {
  SIMGPU_ENTER(cuCtxResetPersistingL2Cache);
  return CUDA_SUCCESS;
}

}  // namespace simgpu
