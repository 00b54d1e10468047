// The cuDNN shim: a call uses the same bytes as the real function. Each case ends with status 0 and its reports, or
// with 4 or 5 if a call returned a wrong result.
#include "tests/simgpu/dnn_cases.h"

#include <vector>

namespace simgpu_test {
namespace {

// --- Descriptors of the graph interface
// ---------------------------------------------------------------------------------

using Backend = cudnnBackendDescriptor_t;

Backend New(cudnnBackendDescriptorType_t type) {
  Backend descriptor = nullptr;
  SUCCEED(cudnnBackendCreateDescriptor(type, &descriptor));
  return descriptor;
}
template <typename T>
void Set(Backend descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
         const std::vector<T>& values) {
  SUCCEED(cudnnBackendSetAttribute(descriptor, name, type, static_cast<int64_t>(values.size()), values.data()));
}
void SetChild(Backend descriptor, cudnnBackendAttributeName_t name, Backend child) {
  Set<Backend>(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, {child});
}
Backend Finalized(Backend descriptor) {
  SUCCEED(cudnnBackendFinalize(descriptor));
  return descriptor;
}

std::vector<int64_t> Packed(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
  return strides;
}

Backend Tensor(int64_t id, const std::vector<int64_t>& dims, std::vector<int64_t> strides = {}, bool is_virtual = false,
               bool by_value = false) {
  const Backend tensor = New(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  bool flag = is_virtual, value = by_value;
  Set<cudnnDataType_t>(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, {CUDNN_DATA_FLOAT});
  Set(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims);
  Set(tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides.empty() ? Packed(dims) : strides);
  Set<int64_t>(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, {id});
  SUCCEED(cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &flag));
  SUCCEED(cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &value));
  return Finalized(tensor);
}

Backend Convolution() { return Finalized(New(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)); }

// Two images of 3 channels, 8 by 8; 4 filters of 3 by 3 without padding: 4 channels, 6 by 6.
const std::vector<int64_t> kX = {2, 3, 8, 8}, kW = {4, 3, 3, 3}, kY = {2, 4, 6, 6};
constexpr size_t kBytesX = 2 * 3 * 8 * 8 * 4, kBytesW = 4 * 3 * 3 * 3 * 4, kBytesY = 2 * 4 * 6 * 6 * 4;
constexpr size_t kWorkspace = 4096;  // the columns of one image, 6 * 6 * (3 * 3 * 3) * 4 = 3888 bytes, rounded up
constexpr uint64_t kAtX = 0, kAtW = 8192, kAtY = 16384, kAtWorkspace = 32768, kAtZ = 65536;

Backend Forward(Backend y) {
  const Backend operation = New(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  SetChild(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, Convolution());
  SetChild(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, Tensor('x', kX));
  SetChild(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, Tensor('w', kW));
  SetChild(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
  return Finalized(operation);
}

Backend Graph(const std::vector<Backend>& operations) {
  const Backend graph = New(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  Set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations);
  return Finalized(graph);
}

// The engine configurations that are advised, the best first.
std::vector<Backend> Advised(Backend graph, cudnnBackendHeurMode_t mode) {
  const Backend heuristics = New(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  SetChild(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  Set<cudnnBackendHeurMode_t>(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, {mode});
  Finalized(heuristics);
  int64_t count = -1;
  SUCCEED(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                                   nullptr));
  std::vector<Backend> configurations;
  for (int64_t i = 0; i < count; ++i) configurations.push_back(New(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
  SUCCEED(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                                   &count, configurations.data()));
  EXPECT(count == static_cast<int64_t>(configurations.size()));
  return configurations;
}

Backend Plan(Backend configuration) {
  const Backend plan = New(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  SetChild(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  return Finalized(plan);
}

int64_t WorkspaceOf(Backend plan) {
  int64_t bytes = -1;
  SUCCEED(
      cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, nullptr, &bytes));
  return bytes;
}

Backend Pack(const std::vector<int64_t>& ids, const std::vector<void*>& pointers, void* workspace) {
  const Backend pack = New(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  Set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids);
  Set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
  Set<void*>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, {workspace});
  return Finalized(pack);
}

struct Sizes {
  size_t x = kBytesX, w = kBytesW, y = kBytesY, workspace = kWorkspace;
};

// One convolution forwards, on blocks of these sizes.
void Convolve(Sizes sizes, CUstream stream = s1) {
  Give(arena + kAtX, sizes.x);
  Give(arena + kAtW, sizes.w);
  Give(arena + kAtY, sizes.y);
  Give(arena + kAtWorkspace, sizes.workspace);
  const Backend plan = Plan(Advised(Graph({Forward(Tensor('y', kY))}), CUDNN_HEUR_MODE_A).front());
  EXPECT(WorkspaceOf(plan) == static_cast<int64_t>(kWorkspace));
  SUCCEED(cudnnBackendExecute(NewDnnHandle(stream), plan,
                              Pack({'x', 'w', 'y'}, {At(kAtX), At(kAtW), At(kAtY)}, At(kAtWorkspace))));
}

CASE(ConvolutionClean) { Convolve({}); }
CASE(ConvolutionBeyondX) { Convolve({.x = kBytesX - 4}); }
CASE(ConvolutionBeyondW) { Convolve({.w = kBytesW - 4}); }
CASE(ConvolutionBeyondY) { Convolve({.y = kBytesY - 4}); }
CASE(ConvolutionBeyondWorkspace) { Convolve({.workspace = kWorkspace - 4}); }
CASE(ConvolutionOnAnotherStream) {
  UsedOnce();
  Convolve({}, s2);
}
CASE(ConvolutionAfterAnEvent) {
  UsedOnce();
  EventEdge(s1, s2);
  Convolve({}, s2);
}
CASE(ConvolutionAfterFree) {
  Give(arena + kAtX, kBytesX);
  Give(arena + kAtW, kBytesW);
  Give(arena + kAtY, kBytesY);
  const Backend plan = Plan(Advised(Graph({Forward(Tensor('y', kY))}), CUDNN_HEUR_MODE_FALLBACK).front());
  EXPECT(WorkspaceOf(plan) == 0);
  Return(arena + kAtW);
  SUCCEED(cudnnBackendExecute(NewDnnHandle(s1), plan, Pack({'x', 'w', 'y'}, {At(kAtX), At(kAtW), At(kAtY)}, nullptr)));
}
CASE(ChannelsLast) {  // the same number of bytes, by other strides; one more row between the images is used in part
  Give(arena + kAtX, kBytesX);
  Give(arena + kAtW, kBytesW);
  Give(arena + kAtY, (1 * 200 + 5 * 24 + 5 * 4 + 3 + 1) * 4);
  const Backend y = Tensor('y', kY, {200, 1, 24, 4});
  const Backend plan = Plan(Advised(Graph({Forward(y)}), CUDNN_HEUR_MODE_FALLBACK).front());
  SUCCEED(cudnnBackendExecute(NewDnnHandle(s1), plan, Pack({'x', 'w', 'y'}, {At(kAtX), At(kAtW), At(kAtY)}, nullptr)));
}

// dx and dw take the places of x and w.
void Backwards(cudnnBackendDescriptorType_t type, cudnnBackendAttributeName_t convolution,
               cudnnBackendAttributeName_t x, cudnnBackendAttributeName_t w, cudnnBackendAttributeName_t y,
               Sizes sizes) {
  Give(arena + kAtX, sizes.x);
  Give(arena + kAtW, sizes.w);
  Give(arena + kAtY, sizes.y);
  Give(arena + kAtWorkspace, sizes.workspace);
  const Backend operation = New(type);
  SetChild(operation, convolution, Convolution());
  SetChild(operation, x, Tensor('x', kX));
  SetChild(operation, w, Tensor('w', kW));
  SetChild(operation, y, Tensor('y', kY));
  const Backend plan = Plan(Advised(Graph({Finalized(operation)}), CUDNN_HEUR_MODE_INSTANT).front());
  SUCCEED(cudnnBackendExecute(NewDnnHandle(s1), plan,
                              Pack({'x', 'w', 'y'}, {At(kAtX), At(kAtW), At(kAtY)}, At(kAtWorkspace))));
}
void BackwardData(Sizes sizes) {
  Backwards(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, sizes);
}
void BackwardFilter(Sizes sizes) {
  Backwards(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, sizes);
}
CASE(BackwardDataClean) { BackwardData({}); }
CASE(BackwardDataBeyondDx) { BackwardData({.x = kBytesX - 4}); }
CASE(BackwardFilterClean) { BackwardFilter({}); }
CASE(BackwardFilterBeyondDw) { BackwardFilter({.w = kBytesW - 4}); }

// Convolution, then z = y + b, where y is never in memory and b is one value of the host's.
Backend Fused() {
  const Backend y = Tensor('y', kY, {}, true);
  const Backend add = New(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  SetChild(add, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, Finalized(New(CUDNN_BACKEND_POINTWISE_DESCRIPTOR)));
  SetChild(add, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, y);
  SetChild(add, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, Tensor('b', {1, 1, 1, 1}, {}, false, true));
  SetChild(add, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, Tensor('z', kY));
  return Plan(Advised(Graph({Forward(y), Finalized(add)}), CUDNN_HEUR_MODE_FALLBACK).front());
}
CASE(VirtualTensorsTakeNoMemory) {
  Give(arena + kAtX, kBytesX);
  Give(arena + kAtW, kBytesW);
  Give(arena + kAtZ, kBytesY);
  float b = 1;
  SUCCEED(cudnnBackendExecute(NewDnnHandle(s1), Fused(),
                              Pack({'x', 'w', 'z', 'b'}, {At(kAtX), At(kAtW), At(kAtZ), &b}, nullptr)));
}
CASE(FusedBeyondZ) {
  Give(arena + kAtX, kBytesX);
  Give(arena + kAtW, kBytesW);
  Give(arena + kAtZ, kBytesY - 4);
  SUCCEED(
      cudnnBackendExecute(NewDnnHandle(s1), Fused(), Pack({'x', 'w', 'z'}, {At(kAtX), At(kAtW), At(kAtZ)}, nullptr)));
}

// As a program that builds everything, keeps the plan and destroys the rest.
CASE(PlansOutliveWhatTheyWereMadeOf) {
  Give(arena + kAtX, kBytesX);
  Give(arena + kAtW, kBytesW);
  Give(arena + kAtY, kBytesY - 4);
  const Backend y = Tensor('y', kY), operation = Forward(y), graph = Graph({operation});
  const std::vector<Backend> advised = Advised(graph, CUDNN_HEUR_MODE_FALLBACK);
  const Backend plan = Plan(advised.front());
  for (const Backend descriptor : {y, operation, graph, advised.front()})
    SUCCEED(cudnnBackendDestroyDescriptor(descriptor));
  SUCCEED(cudnnBackendExecute(NewDnnHandle(s1), plan, Pack({'x', 'w', 'y'}, {At(kAtX), At(kAtW), At(kAtY)}, nullptr)));
}

CASE(EnginesAreNamed) {
  const std::vector<Backend> advised = Advised(Graph({Forward(Tensor('y', kY))}), CUDNN_HEUR_MODE_B);
  EXPECT(advised.size() == 2);
  const int64_t workspaces[] = {kWorkspace, 0};
  for (size_t i = 0; i < advised.size(); ++i) {
    Backend engine = New(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    int64_t count = 0, index = -1;
    SUCCEED(cudnnBackendGetAttribute(advised[i], CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                     &engine));
    EXPECT(count == 1);
    SUCCEED(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &index));
    EXPECT(index == static_cast<int64_t>(advised.size() - 1 - i));
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    SUCCEED(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                     CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes));
    EXPECT(count == 0);
    EXPECT(WorkspaceOf(Plan(advised[i])) == workspaces[i]);
  }
}

CASE(WorkspaceSetting) {  // run with SIMGPU_DNN_WORKSPACE=1K: no more than that
  EXPECT(WorkspaceOf(Plan(Advised(Graph({Forward(Tensor('y', kY))}), CUDNN_HEUR_MODE_A).front())) == 1024);
}
CASE(NoWorkspace) {  // run with SIMGPU_DNN_WORKSPACE=0: one engine is left
  const std::vector<Backend> advised = Advised(Graph({Forward(Tensor('y', kY))}), CUDNN_HEUR_MODE_A);
  EXPECT(advised.size() == 1);
  EXPECT(WorkspaceOf(Plan(advised.front())) == 0);
}

CASE(BackendMisuse) {
  Backend tensor = New(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  int64_t number = 1;
  ANSWERS(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, nullptr));
  ANSWERS(CUDNN_STATUS_BAD_PARAM, cudnnBackendFinalize(tensor));  // nothing was set
  ANSWERS(CUDNN_STATUS_BAD_PARAM,
          cudnnBackendSetAttribute(tensor, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &number));
  ANSWERS(CUDNN_STATUS_BAD_PARAM,
          cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, nullptr));
  ANSWERS(CUDNN_STATUS_NOT_INITIALIZED,
          cudnnBackendGetAttribute(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, nullptr, &number));
  const Backend operation = New(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  ANSWERS(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
          cudnnBackendSetAttribute(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                   1, &tensor));
  ANSWERS(CUDNN_STATUS_BAD_PARAM, cudnnBackendFinalize(operation));
  const Backend whole = Tensor('y', kY);
  ANSWERS(CUDNN_STATUS_NOT_INITIALIZED,  // as documented of a descriptor that is finalized already
          cudnnBackendSetAttribute(whole, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number));
  ANSWERS(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
          cudnnBackendGetAttribute(whole, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_FLOAT, 1, nullptr, &number));
  ANSWERS(CUDNN_STATUS_BAD_PARAM, cudnnBackendFinalize(New(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)));
  ANSWERS(CUDNN_STATUS_BAD_PARAM, cudnnBackendFinalize(New(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)));
  const Backend pack = New(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  Set<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, {1, 1});
  Set<void*>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, {At(0), At(0)});
  ANSWERS(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, cudnnBackendFinalize(pack));
}
CASE(ExecuteMisuse) {
  const std::vector<Backend> advised = Advised(Graph({Forward(Tensor('y', kY))}), CUDNN_HEUR_MODE_A);
  const Backend with = Plan(advised.front()), without = Plan(advised.back());
  cudnnHandle_t handle = NewDnnHandle(s1);
  const Backend whole = Pack({'x', 'w', 'y'}, {At(kAtX), At(kAtW), At(kAtY)}, nullptr);
  ANSWERS(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, cudnnBackendExecute(handle, with, whole));  // no workspace
  ANSWERS(CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
          cudnnBackendExecute(handle, without, Pack({'x', 'w'}, {At(kAtX), At(kAtW)}, nullptr)));
  ANSWERS(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, cudnnBackendExecute(handle, whole, without));
  ANSWERS(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
          cudnnBackendExecute(handle, without, New(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)));
  ANSWERS(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, cudnnBackendExecute(nullptr, without, whole));
}

}  // namespace
}  // namespace simgpu_test
