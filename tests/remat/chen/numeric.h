// Computes training steps: it follows a schedule action by action on arrays of numbers. Contents that were dropped, or
// taken over in place, become NaN, so that a wrong plan shows in the gradients.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "remat/chen/mirror.h"
#include "remat/networks/network.h"
#include "remat/networks/training_graph.h"

namespace hotpack::remat {

using Numbers = std::vector<float>;
// The storages that an operator names, by their id in the program. It may access no others.
using Operands = std::map<StorageId, float*>;
// `random`: the generator's state, which the operator advances.
using Kernel = std::function<void(const Operands& operands, uint64_t* random)>;

struct Computable {
  Graph graph;
  std::vector<Kernel> kernels;                       // by operator
  std::vector<size_t> elements;                      // by storage
  std::vector<std::pair<StorageId, Numbers>> given;  // other given contents are 0
};

// The training step of a network of fully connected layers, batch normalisation, relu, tanh, dropout, sums, products
// and softmax; weights and images are drawn by `seed`.
Computable MakeComputable(const Network& network, const TrainingOptions& options, uint64_t seed);

// Returns the mirrored graph of the same step. Copies compute the same as their operators. Random copies begin with the
// state that they read.
Computable MirroredComputable(const Computable& step, const MirroredGraph& mirrored);

// Returns the kept contents by storage; the others are empty.
std::vector<Numbers> Execute(const Computable& step, const Schedule& schedule);

// Compares bit by bit.
bool SameNumbers(const std::vector<Numbers>& a, const std::vector<Numbers>& b);

}  // namespace hotpack::remat
