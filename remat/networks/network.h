// A network as its forward pass: layers over tensors, and what the gradient of each layer reads.
//
//   x ──► conv ──► h ──► bn ──► n, statistics      gradient of conv reads x and its weights, that of bn h and the statistics,
//          ▲                    │                   that of relu y alone: so n may be overwritten by y, and h and y are what
//        weights               relu ──► y           is wanted behind the forward pass
//
// The declaration follows MXNet's DeclareBackwardDependency and in-place options (Chen et al. 2016, section 3): every
// operator says for itself which of its operands its backward operator reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "packer/types.h"

namespace hotpack::remat {

using TensorId = int32_t;

enum class TensorRole : uint8_t {
  kFeatureMap,  // has a gradient, if a weight is behind it
  kMask,        // a feature map without a gradient: what dropout or a pooling has chosen
  kStatistics,  // a few numbers that the backward operator wants: means and variances. Storages of kind `other`
  kWeight,
  kData,  // images, labels, initial states: given, without a gradient. Storages of kind `other`
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
  std::string kind;                      // "convolution", "batch_norm", "relu", ...
  std::vector<TensorId> inputs;          // feature maps, masks and data; no tensor twice
  std::vector<TensorId> weights;         // may be other layers' as well
  std::vector<TensorId> outputs;         // of this layer alone
  std::vector<TensorId> gradient_reads;  // of the three lists above; the gradients of the outputs are read anyway
  std::vector<TensorPair> in_place;      // an input and the output that may take over its memory
  std::vector<TensorPair>
      gradient_in_place;         // an output whose gradient's memory may become that of this input's gradient
  double flops = 0;              // of the forward operator
  double gradient_flops = 0;     // for each gradient of an input or a weight that the backward operator makes
  double moved = kOperandsOnce;  // bytes through memory
  double gradient_moved = kOperandsOnce;
  Bytes workspace = 0;
  Bytes gradient_workspace = 0;
  bool heavy = false;   // convolutions, products of matrices
  bool random = false;  // draws random numbers (its backward operator does not)
};

// What the loss is taken from.
struct Result {
  TensorId tensor;
  TensorId labels = -1;  // -1: none
};

// Layers in the order in which they run. Plain data: who wants other declarations changes them.
struct Network {
  std::vector<Tensor> tensors;
  std::vector<Layer> layers;
  std::vector<Result> results;
};

// Bytes of the feature maps (masks as well) that the forward pass makes, each with its own memory.
Bytes FeatureMapBytes(const Network& network);
// Bytes of the weights.
Bytes WeightBytes(const Network& network);
// Layers of one kind.
int64_t CountOf(const Network& network, const std::string& kind);

}  // namespace hotpack::remat
