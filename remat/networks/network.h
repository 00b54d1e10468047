// A network as its forward pass: layers over tensors, and the tensors that the gradient of each layer reads.
//
//   x ──► conv ──► h ──► bn ──► n, statistics
//          ▲                    │
//        weights               relu ──► y
//
// The gradient of conv reads x and its weights, that of bn reads h and the statistics, and that of relu reads y alone.
// So y may overwrite n, and h and y are wanted behind the forward pass.
//
// The declarations follow MXNet's DeclareBackwardDependency and in-place options (Chen et al. 2016, section 3): each
// layer names the operands that its backward operator reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "packer/types.h"

namespace hotpack::remat {

using TensorId = int32_t;

enum class TensorRole : uint8_t {
  kFeatureMap,  // has a gradient, if it depends on a weight
  kMask,        // a feature map without a gradient: the choice of a dropout or a pooling
  // A few numbers for the backward operator: means and variances. Storages of kind `other`.
  kStatistics,
  kWeight,
  // Images, labels, initial states: given, without a gradient. Storages of kind `other`.
  kData,
};

struct Tensor {
  std::string name;
  std::vector<int64_t> shape;  // outermost first: images are batch, channels, height, width
  Bytes bytes = 0;
  TensorRole role = TensorRole::kFeatureMap;
};

struct TensorPair {
  TensorId from;
  TensorId to;
};

inline constexpr double kOperandsOnce = -1;  // each operand goes through memory once

struct Layer {
  std::string name;
  std::string kind;               // "convolution", "batch_norm", "relu", ...
  std::vector<TensorId> inputs;   // feature maps, masks and data; no tensor twice
  std::vector<TensorId> weights;  // other layers may share them
  std::vector<TensorId> outputs;  // of this layer alone
  // Tensors of the three lists above. The gradients of the outputs are always read.
  std::vector<TensorId> gradient_reads;
  std::vector<TensorPair> in_place;  // an input, and the output that may take over its memory
  // An output and an input: the memory of the output's gradient may become that of the input's gradient.
  std::vector<TensorPair> gradient_in_place;
  double flops = 0;  // of the forward operator
  // For each gradient of an input or a weight that the backward operator makes.
  double gradient_flops = 0;
  double moved = kOperandsOnce;  // bytes moved through memory
  double gradient_moved = kOperandsOnce;
  Bytes workspace = 0;
  Bytes gradient_workspace = 0;
  bool heavy = false;   // convolutions, matrix products
  bool random = false;  // draws random numbers; its backward operator does not
};

// A tensor from which the loss is computed.
struct Result {
  TensorId tensor;
  TensorId labels = -1;  // -1: none
};

// Layers in the order in which they run. Plain data, which callers may change to declare other operators.
struct Network {
  std::vector<Tensor> tensors;
  std::vector<Layer> layers;
  std::vector<Result> results;
};

// Returns the bytes of the feature maps, masks included, that the forward pass makes, each with its own memory.
Bytes FeatureMapBytes(const Network& network);
// Returns the bytes of the weights.
Bytes WeightBytes(const Network& network);
// Returns the number of layers of one kind.
int64_t CountOf(const Network& network, const std::string& kind);

}  // namespace hotpack::remat
