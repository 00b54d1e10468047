// From operations to an execution plan: checks required attributes, and determines which tensors a graph reads and
// writes and its workspace.
//
//   tensors -> operations -> operation graph -> engine (0: no workspace, 1: with one) -> engine configuration -> plan
#include <algorithm>
#include <iterator>
#include <set>

#include "simgpu/dnn/backend.h"
#include "simgpu/dnn/workspace.h"

namespace simgpu::dnn {
namespace {

constexpr int64_t kEngines = 2;
constexpr int64_t kEngineWithWorkspace = 1;

// Attributes of operations whose tensors are written; all other tensors of an operation are read. Numbers without a
// name are those of newer headers: statistics and gradients of attention.
constexpr int kResults[] = {
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
    CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
    CUDNN_ATTR_OPERATION_POINTWISE_DXDESC,
    CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC,
    CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_VAR_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_MEAN_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_INV_STD_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_SCALE_DESC,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_BIAS_DESC,
    CUDNN_ATTR_OPERATION_MATMUL_CDESC,
    CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC,
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC,
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC,
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC,
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS,
    CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC,
    CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC,
    CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC,
    CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC,
    CUDNN_ATTR_OPERATION_SIGNAL_YDESC,
    CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC,
    CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC,
    CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC,
    CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC,
    CUDNN_ATTR_OPERATION_NORM_FWD_YDESC,
    CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC,
    CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC,
    CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC,
    CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
    CUDNN_ATTR_OPERATION_RNG_YDESC,
    2803,
    2804,
    2817,
    2828,
    2829,  // SDPA_FWD: ODESC, STATSDESC, DROPOUT_RNG_DUMP_DESC, AMAX_SDESC, AMAX_ODESC
    2859,
    2860,
    2861,
    2864,  // SDPA_BWD: DQDESC, DKDESC, DVDESC, DSINK_DESC
    2905,
    2953,
    3006,
    3101,
    3102,  // MOE_GROUPED_MATMUL: OUTPUT_DESC, its BWD: DWEIGHT_DESC; DIAGONAL_BAND_MASK_YDESC;
    3103,
    3104,
    3201,
    3301,  // SOFTMAX: YDESC, STATS_DESC, MAX_DESC, SUM_EXP_DESC; TRANSPOSE_YDESC, SLICE_YDESC
    3401,
    3411,  // ROPE_FWD_YDESC, ROPE_BWD_DXDESC
};

bool IsWritten(int name) { return std::find(std::begin(kResults), std::end(kResults), name) != std::end(kResults); }

bool HasCount(const Content& content, int name) {
  const Attribute* attribute = content.Find(name);
  return attribute != nullptr && attribute->count > 0;
}

bool HasAll(const Content& content, std::initializer_list<int> names) {
  return std::all_of(names.begin(), names.end(), [&](int name) { return HasCount(content, name); });
}

cudnnStatus_t CompleteTensor(const Content& tensor) {
  if (!HasAll(tensor, {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_STRIDES,
                       CUDNN_ATTR_TENSOR_UNIQUE_ID})) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  const auto dims = tensor.All<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
             strides = tensor.All<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  if (dims.size() != strides.size() || dims.size() > CUDNN_DIM_MAX) return CUDNN_STATUS_BAD_PARAM;
  if (std::any_of(dims.begin(), dims.end(), [](int64_t extent) { return extent <= 0; })) return CUDNN_STATUS_BAD_PARAM;
  return ElementBits(tensor.Get(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT)) > 0 ? CUDNN_STATUS_SUCCESS
                                                                                    : CUDNN_STATUS_NOT_SUPPORTED;
}

// Names of a convolution's parts: the convolution, the image on the output side, the filters, the image on the input
// side.
struct ConvolutionNames {
  int convolution, output, filter, input;
};
const ConvolutionNames* NamesOf(cudnnBackendDescriptorType_t type) {
  static constexpr ConvolutionNames kForward = {
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X};
  static constexpr ConvolutionNames kData = {
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX};
  static constexpr ConvolutionNames kFilter = {
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X};
  switch (type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return &kForward;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return &kData;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return &kFilter;
    default:
      return nullptr;
  }
}

cudnnStatus_t CompleteConvolution(const Content& operation, const ConvolutionNames& names) {
  if (operation.Child(names.convolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR) == nullptr)
    return CUDNN_STATUS_BAD_PARAM;
  size_t count = 0;
  for (const int name : {names.output, names.filter, names.input}) {
    const Content* tensor = operation.Child(name, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    if (tensor == nullptr) return CUDNN_STATUS_BAD_PARAM;
    const size_t dims = tensor->All<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS).size();
    if (count != 0 && dims != count) return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
    count = dims;
  }
  return CUDNN_STATUS_SUCCESS;
}

uint64_t WorkspaceOf(const Content& operation) {
  const ConvolutionNames* names = NamesOf(operation.type);
  if (names == nullptr) return 0;
  const Content* output = operation.Child(names->output, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const Content* filter = operation.Child(names->filter, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const auto positions = output->All<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  return ConvolutionWorkspace(static_cast<int64_t>(positions.size()), positions.data(),
                              filter->All<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS).data(),
                              ElementBits(output->Get(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT)));
}

// Adds the tensor, unless it is virtual or a host value, and the tensor with the offsets of its ragged rows. The length
// of the offsets is in device memory, so only their first element counts.
void AddTensor(const Content& tensor, bool written, std::vector<Operand>* operands) {
  if (tensor.Get<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL, false) || tensor.Get<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE, false))
    return;
  const Content* offsets = tensor.Child(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  if (offsets != nullptr) AddTensor(*offsets, false, operands);
  const uint64_t element = (ElementBits(tensor.Get(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT)) + 7) / 8;
  const uint64_t bytes = offsets != nullptr ? element : TensorBytes(tensor);
  const auto id = tensor.Get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
  const auto same =
      std::find_if(operands->begin(), operands->end(), [&](const Operand& operand) { return operand.unique_id == id; });
  if (same == operands->end()) {
    operands->push_back({id, bytes, written});
  } else {
    same->written = same->written || written;
    same->bytes = std::max(same->bytes, bytes);
  }
}

// Collects everything below a graph or an operation: its tensors and its parts.
void Gather(const Content& content, std::vector<Operand>* operands, uint64_t* workspace) {
  *workspace += WorkspaceOf(content);
  for (const auto& [name, attribute] : content.attributes) {
    for (const ContentPointer& child : attribute.contents) {
      if (child->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
        AddTensor(*child, IsWritten(name), operands);
      } else {
        Gather(*child, operands, workspace);
      }
    }
  }
}

// Returns one engine configuration: engine `index` on the graph that `from` names.
ContentPointer Configuration(const ContentPointer& graph, int64_t index) {
  auto engine = std::make_shared<Content>(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine->attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = {CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, {}, {graph}};
  engine->Put(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index);
  engine->finalized = true;
  auto configuration = std::make_shared<Content>(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  configuration->attributes[CUDNN_ATTR_ENGINECFG_ENGINE] = {CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, {}, {engine}};
  configuration->finalized = Complete(configuration.get()) == CUDNN_STATUS_SUCCESS;
  return configuration;
}

uint64_t WorkspaceOfGraph(const Content& graph) {
  std::vector<Operand> operands;
  uint64_t bytes = 0;
  Gather(graph, &operands, &bytes);
  return bytes;
}

// The faster engine first. As a fallback only the one without a workspace; only that one too if both are the same.
cudnnStatus_t CompleteHeuristics(Content* heuristics) {
  const Content* graph =
      heuristics->Child(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (graph == nullptr || !HasCount(*heuristics, CUDNN_ATTR_ENGINEHEUR_MODE)) return CUDNN_STATUS_BAD_PARAM;
  const ContentPointer shared = heuristics->Find(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)->contents.front();
  Attribute results{CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, {}, {}};
  if (heuristics->Get(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A) != CUDNN_HEUR_MODE_FALLBACK &&
      WorkspaceOfGraph(*graph) > 0) {
    results.contents.push_back(Configuration(shared, kEngineWithWorkspace));
  }
  results.contents.push_back(Configuration(shared, 0));
  results.count = static_cast<int64_t>(results.contents.size());
  heuristics->attributes[CUDNN_ATTR_ENGINEHEUR_RESULTS] = std::move(results);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CompleteConfiguration(Content* configuration) {
  const Content* engine = configuration->Child(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  if (engine == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const Content* graph = engine->Child(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  const bool with = engine->Get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0) == kEngineWithWorkspace;
  configuration->Put(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, with ? static_cast<int64_t>(WorkspaceOfGraph(*graph)) : 0);
  Attribute shared{CUDNN_TYPE_INT32, 1, std::vector<char>(sizeof(int32_t)), {}};  // none
  configuration->attributes[CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED] = std::move(shared);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CompleteEngine(const Content& engine) {
  if (engine.Child(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) == nullptr) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  const auto index = engine.Get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1);
  return index >= 0 && index < kEngines ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t CompletePlan(Content* plan) {
  const Content* configuration =
      plan->Child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  if (configuration == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const Content* engine = configuration->Child(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  uint64_t unused = 0;
  Gather(*engine->Child(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR), &plan->operands,
         &unused);
  const auto bytes = configuration->Get<int64_t>(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, 0);
  plan->workspace_bytes = static_cast<uint64_t>(bytes);
  plan->Put(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, bytes);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CompletePack(const Content& pack) {
  const auto ids = pack.All<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  if (ids.size() != pack.All<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).size()) return CUDNN_STATUS_BAD_PARAM;
  return std::set<int64_t>(ids.begin(), ids.end()).size() == ids.size() ? CUDNN_STATUS_SUCCESS
                                                                        : CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES;
}

}  // namespace

uint64_t TensorBytes(const Content& tensor) {
  const auto dims = tensor.All<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
             strides = tensor.All<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  const uint64_t bytes = TensorBytes(static_cast<int64_t>(dims.size()), dims.data(), strides.data(),
                                     tensor.Get(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT));
  return bytes * static_cast<uint64_t>(tensor.Get<int64_t>(CUDNN_ATTR_TENSOR_VECTOR_COUNT, 1));
}

cudnnStatus_t Complete(Content* content) {
  switch (content->type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return CompleteTensor(*content);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return CompleteConvolution(*content, *NamesOf(content->type));
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      content->Put(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, kEngines);
      return HasCount(*content, CUDNN_ATTR_OPERATIONGRAPH_OPS) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return CompleteEngine(*content);
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return CompleteConfiguration(content);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return CompleteHeuristics(content);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return CompletePlan(content);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return CompletePack(*content);
    default:
      return CUDNN_STATUS_SUCCESS;
  }
}

}  // namespace simgpu::dnn
