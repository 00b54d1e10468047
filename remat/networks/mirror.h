// MXNet's form of Chen et al. 2016 (section 4.2): operators of the forward pass are mirrored in the backward pass,
// where gradients read the mirrors' results (MXNET_BACKWARD_DO_MIRROR; NNVM's gradient pass).
//
//   x ─ fc ─ a ─ tanh ─ b ─ fc ─ y
//            └── tanh' ─ b'
//
// Here tanh is mirrored and fc is not. The gradient of tanh reads b', which the mirror makes from a. The gradient of fc
// reads b itself, which is kept as well.
#pragma once

#include <vector>

#include "remat/core/graph.h"
#include "remat/networks/network.h"
#include "remat/networks/training_graph.h"

namespace hotpack::remat {

// Returns the step with mirrors of the layers for which `mirrored` is true. Each mirror runs once, before the first
// gradient that needs it. `training` is a step of `network`. The graph passes Check(). O(operands). Thread-safe.
Graph Mirror(const Network& network, const Training& training, const std::vector<bool>& mirrored);

}  // namespace hotpack::remat
