// The training step of a network: forward pass, loss, backward pass in the reverse order, update.
//
//   forward    conv ─ bn ─ relu ─ ... ─ softmax
//   loss       makes the gradient of the result (phase: backward)
//   backward   softmax' ─ ... ─ relu' ─ bn' ─ conv'     each reads the gradients of its layer's outputs and the tensors
//                                                       that the layer declares, and makes the gradients of its inputs
//                                                       and weights
//   update     one operator per weight
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "remat/core/graph.h"
#include "remat/networks/device.h"
#include "remat/networks/network.h"

namespace hotpack::remat {

// How the second gradient of a tensor that several layers use is added.
enum class Accumulation : uint8_t {
  kInPlace,   // the backward operator adds to the first
  kOperator,  // it makes a gradient of its own, and another operator adds them
};

struct TrainingOptions {
  Device device = {};
  // Includes weights, their gradients and updates. Otherwise only feature maps; costs stay the same.
  bool weights = true;
  bool updates = true;  // otherwise the weights' gradients are kept
  // Each has a weight's size: 0 plain descent, 1 momentum, 2 Adam.
  int optimizer_states = 1;
  // The weights' gradients have permanent memory, as in MXNet and Chainer: they are changed in place, so every plan
  // holds them. Otherwise their memory lasts from the backward operator that makes them to their update.
  bool gradients_stay = true;
  Accumulation accumulation = Accumulation::kInPlace;
};

// The graph, and the storages and operators of each tensor and layer; -1: none.
struct Training {
  Graph graph;
  std::vector<StorageId> storage_of;    // by tensor
  std::vector<StorageId> gradient_of;   // by tensor
  std::vector<OperatorId> forward_of;   // by layer
  std::vector<OperatorId> backward_of;  // by layer
};

// Returns the training step. Its graph passes Check(). O(operands). Thread-safe. Tensors that depend on a weight and on
// which a result depends have gradients. A layer on which no result depends has no backward operator. Returns
// InvalidArgument with one line for a network without results, sizes that add up to more than 2^62 bytes, or an id out
// of range.
absl::StatusOr<Training> MakeTraining(const Network& network, const TrainingOptions& options = {});
absl::StatusOr<Graph> TrainingGraph(const Network& network, const TrainingOptions& options = {});

}  // namespace hotpack::remat
