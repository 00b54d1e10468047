// What MXNet does of Chen et al. 2016 (section 4.2): operators of the forward pass are mirrored in the backward pass,
// where gradients read what the mirrors make (MXNET_BACKWARD_DO_MIRROR; NNVM's gradient pass).
//
//   x ─ fc ─ a ─ tanh ─ b ─ fc ─ y          tanh is mirrored, fc is not: the gradient of tanh reads b', which a mirror makes from a; that of
//            └── tanh' ─ b'                 fc reads b itself, which is kept as well
#pragma once

#include <vector>

#include "remat/core/graph.h"
#include "remat/networks/network.h"
#include "remat/networks/training_graph.h"

namespace hotpack::remat {

// The step with mirrors of the layers for which `mirrored` holds; each runs once, before the first gradient that needs
// it. `training` is a step of `network`. Passes Check(). O(operands). Thread-safe.
Graph Mirror(const Network& network, const Training& training, const std::vector<bool>& mirrored);

}  // namespace hotpack::remat
