// The training step of a network: forward pass, loss, backward pass in the reverse order, update.
//
//   forward    conv ─ bn ─ relu ─ ... ─ softmax
//   loss       makes the gradient of the result                                         (phase: backward)
//   backward   softmax' ─ ... ─ relu' ─ bn' ─ conv'   each reads the gradients of its layer's outputs and what the layer declares,
//                                                     and makes those of its inputs and weights
//   update     one operator a weight
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "remat/core/graph.h"
#include "remat/networks/device.h"
#include "remat/networks/network.h"

namespace hotpack::remat {

// What becomes of the second gradient of a tensor that several layers use.
enum class Accumulation : uint8_t {
  kInPlace,   // the backward operator adds to the first
  kOperator,  // it makes one of its own, and one more operator adds them
};

struct TrainingOptions {
  Device device = {};
  bool weights = true;  // weights, their gradients and what updates them; else feature maps alone (costs stay the same)
  bool updates = true;  // else the weights' gradients are kept
  int optimizer_states = 1;  // of a weight's size each: 0 plain descent, 1 momentum, 2 Adam
  bool gradients_stay =
      true;  // the weights' gradients have memory for good, as in MXNet and Chainer: they are changed in place, so that
             // no plan does without them; else from the backward operator that makes them to their
             // update
  Accumulation accumulation = Accumulation::kInPlace;
};

// The graph, and what came of each tensor and layer; -1: nothing did.
struct Training {
  Graph graph;
  std::vector<StorageId> storage_of;    // by tensor
  std::vector<StorageId> gradient_of;   // by tensor
  std::vector<OperatorId> forward_of;   // by layer
  std::vector<OperatorId> backward_of;  // by layer
};

// Gradients are made of the tensors from which a result follows and that follow from a weight; a layer from which no
// result follows has no backward operator. The graph passes Check(); InvalidArgument with one line otherwise: a network
// without results, sizes that add up to more than 2^62 bytes, an id that is none. O(operands). Thread-safe.
absl::StatusOr<Training> MakeTraining(const Network& network, const TrainingOptions& options = {});
absl::StatusOr<Graph> TrainingGraph(const Network& network, const TrainingOptions& options = {});

}  // namespace hotpack::remat
