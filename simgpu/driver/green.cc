// Green contexts: parts of the multiprocessors. Memory that is allocated with one current belongs to the primary
// context, which each retains (cuda.h, cuGreenCtxCreate, cuCtxFromGreenCtx). Its streams do not end with it, but no
// call takes them any more (cuGreenCtxDestroy). A green context is a Context with a parent. Both handles name it.
#include <algorithm>
#include <cstring>

#include "simgpu/driver/api.h"
#include "simgpu/driver/work.h"

namespace simgpu {
namespace {

constexpr unsigned kMultiprocessors = 132, kSmallestPart = 8;

Context* From(CUgreenCtx handle) { return reinterpret_cast<Context*>(handle); }

bool Valid(const Driver& d, CUdevice device) { return device >= 0 && device < static_cast<int>(d.devices.size()); }

bool IsGreen(const Driver& d, Context* context) { return d.contexts.contains(context) && context->parent != nullptr; }

CUdevResource Multiprocessors(unsigned count) {
  CUdevResource resource = {};
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  resource.sm.smCount = count;
  resource.sm.minSmPartitionSize = resource.sm.smCoscheduledAlignment = kSmallestPart;
  return resource;
}

CUresult Answer(CUdevResource* resource, CUdevResourceType type, unsigned count) {
  if (resource == nullptr || type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
  *resource = Multiprocessors(count);
  return CUDA_SUCCESS;
}

unsigned CountOf(const Context* context) { return context->parent != nullptr ? context->part : kMultiprocessors; }

CUresult CreateStreamIn(Driver& d, CUstream* result, Context* context, unsigned flags, int priority) {
  if (result == nullptr || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = CreateStream(d, context, flags, std::clamp(priority, -5, 0), StreamKind::kNonBlocking);
  *result = reinterpret_cast<CUstream>(stream);
  return CUDA_SUCCESS;
}

}  // namespace

SIMGPU_API cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  SIMGPU_ENTER(cuDeviceGetDevResource);
  if (!Valid(d, device)) return CUDA_ERROR_INVALID_DEVICE;
  return Answer(resource, type, kMultiprocessors);
}

SIMGPU_API cuCtxGetDevResource(CUcontext context, CUdevResource* resource, CUdevResourceType type) {
  SIMGPU_ENTER(cuCtxGetDevResource);
  if (!d.contexts.contains(reinterpret_cast<Context*>(context))) return CUDA_ERROR_INVALID_CONTEXT;
  return Answer(resource, type, CountOf(reinterpret_cast<Context*>(context)));
}

SIMGPU_API cuGreenCtxGetDevResource(CUgreenCtx green, CUdevResource* resource, CUdevResourceType type) {
  SIMGPU_ENTER(cuGreenCtxGetDevResource);
  if (!IsGreen(d, From(green))) return CUDA_ERROR_INVALID_CONTEXT;
  return Answer(resource, type, CountOf(From(green)));
}

SIMGPU_API cuDevSmResourceSplitByCount(CUdevResource* parts, unsigned* count, const CUdevResource* input,
                                       CUdevResource* remaining, unsigned, unsigned smallest) {
  SIMGPU_ENTER(cuDevSmResourceSplitByCount);
  if (count == nullptr || input == nullptr || input->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
  const unsigned wanted = std::max(smallest, 1u);
  const unsigned size = (wanted + kSmallestPart - 1) / kSmallestPart * kSmallestPart;
  const unsigned possible = input->sm.smCount / size;
  if (parts != nullptr) {
    *count = std::min(*count, possible);
    for (unsigned i = 0; i < *count; ++i) parts[i] = Multiprocessors(size);
  } else {
    *count = possible;
  }
  if (remaining != nullptr) *remaining = Multiprocessors(input->sm.smCount - *count * size);
  return CUDA_SUCCESS;
}

// A descriptor is the number of multiprocessors.
SIMGPU_API cuDevResourceGenerateDesc(CUdevResourceDesc* result, CUdevResource* resources, unsigned count) {
  SIMGPU_ENTER(cuDevResourceGenerateDesc);
  if (result == nullptr || resources == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  uint64_t sum = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    sum += resources[i].sm.smCount;
  }
  *result = reinterpret_cast<CUdevResourceDesc>(sum);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGreenCtxCreate(CUgreenCtx* result, CUdevResourceDesc resources, CUdevice device, unsigned flags) {
  SIMGPU_ENTER(cuGreenCtxCreate);
  if (result == nullptr || resources == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM)
    return CUDA_ERROR_INVALID_VALUE;
  if (!Valid(d, device)) return CUDA_ERROR_INVALID_DEVICE;
  Context* parent = RetainPrimary(d, device);
  Context* green = CreateContext(d, device, parent->flags);
  green->parent = parent;
  parent->green_groups.push_back(green->group);
  green->part = static_cast<unsigned>(reinterpret_cast<uintptr_t>(resources));
  *result = reinterpret_cast<CUgreenCtx>(green);
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxFromGreenCtx(CUcontext* result, CUgreenCtx green) {
  SIMGPU_ENTER(cuCtxFromGreenCtx);
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsGreen(d, From(green))) return CUDA_ERROR_INVALID_CONTEXT;
  *result = reinterpret_cast<CUcontext>(green);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGreenCtxDestroy(CUgreenCtx handle) {
  SIMGPU_ENTER(cuGreenCtxDestroy);
  Context* green = From(handle);
  if (!IsGreen(d, green)) return CUDA_ERROR_INVALID_CONTEXT;
  const int device = green->device;
  DestroyContext(d, green);
  ReleasePrimary(d, device);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGreenCtxStreamCreate(CUstream* result, CUgreenCtx green, unsigned flags, int priority) {
  SIMGPU_ENTER(cuGreenCtxStreamCreate);
  if (!IsGreen(d, From(green))) return CUDA_ERROR_INVALID_CONTEXT;
  return CreateStreamIn(d, result, From(green), flags, priority);
}

SIMGPU_API cuGreenCtxRecordEvent(CUgreenCtx green, CUevent event) {
  return cuCtxRecordEvent(reinterpret_cast<CUcontext>(green), event);
}
SIMGPU_API cuGreenCtxWaitEvent(CUgreenCtx green, CUevent event) {
  return cuCtxWaitEvent(reinterpret_cast<CUcontext>(green), event);
}

SIMGPU_API cuGreenCtxGetId(CUgreenCtx green, unsigned long long* id) {
  SIMGPU_ENTER(cuGreenCtxGetId);
  if (!IsGreen(d, From(green))) return CUDA_ERROR_INVALID_CONTEXT;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = From(green)->id;
  return CUDA_SUCCESS;
}

SIMGPU_API cuStreamGetGreenCtx(CUstream handle, CUgreenCtx* green) {
  SIMGPU_ENTER(cuStreamGetGreenCtx);
  SIMGPU_STREAM(stream, handle, DefaultStream::kLegacy);
  if (green == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *green = stream->context->parent != nullptr ? reinterpret_cast<CUgreenCtx>(stream->context) : nullptr;
  return CUDA_SUCCESS;
}

}  // namespace simgpu
