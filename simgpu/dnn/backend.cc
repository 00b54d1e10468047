// The entry points of the graph interface: they create, set, read and execute descriptors.
#include "simgpu/dnn/backend.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace simgpu::dnn {
namespace {

// The target of a cudnnBackendDescriptor_t.
struct Descriptor {
  static constexpr uint32_t kMagic = 0x64657363;
  uint32_t magic = kMagic;
  ContentPointer content;
};

Descriptor* Find(cudnnBackendDescriptor_t handle) {
  auto* descriptor = static_cast<Descriptor*>(handle);
  return descriptor != nullptr && descriptor->magic == Descriptor::kMagic ? descriptor : nullptr;
}

size_t ElementBytes(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_FRACTION:
      return sizeof(cudnnFraction_t);
    default:  // enumerations, int32, float
      return 4;
  }
}

// The attributes of some types of descriptors. Other types are not checked: newer ones have more.
struct Range {
  cudnnBackendDescriptorType_t type;
  int first, last;
};
constexpr Range kRanges[] = {
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 0, 99},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 100, 199},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 200, 299},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 300, 399},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 400, 499},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 700, 705},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 706, 711},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 712, 717},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 750, 769},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 800, 899},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, 900, 999},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 1000, 1099},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1300, 1399},
    {CUDNN_BACKEND_MATMUL_DESCRIPTOR, 1500, 1519},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, 1520, 1599},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, 1600, 1609},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, 1610, 1619},
};
bool MayHave(cudnnBackendDescriptorType_t type, int name) {
  const auto* range =
      std::find_if(std::begin(kRanges), std::end(kRanges), [&](const Range& r) { return r.type == type; });
  return range == std::end(kRanges) || (name >= range->first && name <= range->last);
}

// Returns true for attributes that no program sets, because they are computed.
bool IsResult(int name) {
  return name == CUDNN_ATTR_ENGINEHEUR_RESULTS || name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE ||
         name == CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT || name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE ||
         name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE || name == CUDNN_ATTR_ENGINE_KNOB_INFO;
}

cudnnStatus_t SetContents(Attribute* attribute, int64_t count, const void* elements) {
  const auto* handles = static_cast<const cudnnBackendDescriptor_t*>(elements);
  for (int64_t i = 0; i < count; ++i) {
    const Descriptor* descriptor = Find(handles[i]);
    if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM;
    if (!descriptor->content->finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    attribute->contents.push_back(descriptor->content);
  }
  return CUDNN_STATUS_SUCCESS;
}

// Points the program's own descriptors at the contents of the attribute.
cudnnStatus_t GetContents(const Attribute& attribute, int64_t count, void* elements) {
  auto* handles = static_cast<cudnnBackendDescriptor_t*>(elements);
  for (int64_t i = 0; i < count; ++i) {
    Descriptor* descriptor = Find(handles[i]);
    const ContentPointer& content = attribute.contents[static_cast<size_t>(i)];
    if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM;
    if (descriptor->content->type != content->type) return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
    descriptor->content = content;
  }
  return CUDNN_STATUS_SUCCESS;
}

// Every tensor in memory must have an address, and so must a workspace.
cudnnStatus_t Execute(cudnnHandle_t handle, const Content& plan, const Content& pack) {
  const auto ids = pack.All<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.All<const void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  std::map<int64_t, const void*> addresses;
  for (size_t i = 0; i < ids.size(); ++i) addresses[ids[i]] = pointers[i];
  for (const Operand& operand : plan.operands) {
    const auto found = addresses.find(operand.unique_id);
    if (found == addresses.end() || found->second == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  }
  const void* workspace = pack.Get<const void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr);
  if (plan.workspace_bytes > 0 && workspace == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  Work work(handle);
  for (const Operand& operand : plan.operands) {
    const void* address = addresses[operand.unique_id];
    operand.written ? work.Write(address, operand.bytes) : work.Read(address, operand.bytes);
  }
  work.Write(workspace, plan.workspace_bytes);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace simgpu::dnn

using namespace simgpu::dnn;  // NOLINT: the functions below are of the C interface

extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* handle) try {
  if (handle == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (static_cast<int>(type) < 0) return CUDNN_STATUS_NOT_SUPPORTED;
  auto descriptor = std::make_unique<Descriptor>();
  descriptor->content = std::make_shared<Content>(type);
  *handle = descriptor.release();
  return CUDNN_STATUS_SUCCESS;
} catch (const std::bad_alloc&) {
  return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t handle) {
  Descriptor* descriptor = Find(handle);
  if (descriptor == nullptr) return handle == nullptr ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
  descriptor->magic = 0;
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}

// Clears the descriptor's settings.
cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t handle) try {
  Descriptor* descriptor = Find(handle);
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  descriptor->content = std::make_shared<Content>(descriptor->content->type);
  return CUDNN_STATUS_SUCCESS;
} catch (const std::bad_alloc&) {
  return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) try {
  Descriptor* descriptor = Find(handle);
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (descriptor->content->finalized) return CUDNN_STATUS_SUCCESS;
  const cudnnStatus_t status = Complete(descriptor->content.get());
  descriptor->content->finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
} catch (const std::bad_alloc&) {
  return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* elements) try {
  const Descriptor* descriptor = Find(handle);
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  Content* content = descriptor->content.get();
  if (content->finalized) return CUDNN_STATUS_NOT_INITIALIZED;
  if (count < 0 || (count > 0 && elements == nullptr)) return CUDNN_STATUS_BAD_PARAM;
  if (!MayHave(content->type, name) || IsResult(name)) return CUDNN_STATUS_BAD_PARAM;
  Attribute attribute{type, count, {}, {}};
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    const cudnnStatus_t status = SetContents(&attribute, count, elements);
    if (status != CUDNN_STATUS_SUCCESS) return status;
  } else if (count > 0) {
    const char* bytes = static_cast<const char*>(elements);
    attribute.bytes.assign(bytes, bytes + static_cast<size_t>(count) * ElementBytes(type));
  }
  content->attributes[name] = std::move(attribute);
  return CUDNN_STATUS_SUCCESS;
} catch (const std::bad_alloc&) {
  return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

// `count` becomes the number of elements, 0 for an attribute that was never set. `elements` gets at most `requested` of
// them. For descriptors `count` becomes the number of written ones, if any were requested: programs take that many as
// theirs.
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const handle, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t requested, int64_t* count,
                                       void* elements) {
  const Descriptor* descriptor = Find(handle);
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  const Content& content = *descriptor->content;
  if (!content.finalized) return CUDNN_STATUS_NOT_INITIALIZED;
  if (requested < 0 || !MayHave(content.type, name)) return CUDNN_STATUS_BAD_PARAM;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION) return CUDNN_STATUS_NOT_SUPPORTED;
  const Attribute* attribute = content.Find(name);
  if (count != nullptr) *count = attribute != nullptr ? attribute->count : 0;
  if (attribute == nullptr) return CUDNN_STATUS_SUCCESS;
  if (attribute->type != type) return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
  const int64_t given = std::min(requested, attribute->count);
  if (elements == nullptr || given == 0) return CUDNN_STATUS_SUCCESS;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    if (count != nullptr) *count = given;
    return GetContents(*attribute, given, elements);
  }
  memcpy(elements, attribute->bytes.data(), static_cast<size_t>(given) * ElementBytes(type));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_handle,
                                  cudnnBackendDescriptor_t pack_handle) try {
  const Descriptor *plan = Find(plan_handle), *pack = Find(pack_handle);
  if (!Valid(handle) || plan == nullptr || pack == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (plan->content->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
      pack->content->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {
    return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
  }
  if (!plan->content->finalized || !pack->content->finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  return Execute(handle, *plan->content, *pack->content);
} catch (const std::bad_alloc&) {
  return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

}  // extern "C"
