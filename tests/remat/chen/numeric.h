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
// What an operator may look at: the storages that it names, by their id in the program.
using Operands = std::map<StorageId, float*>;
// `random`: the generator's state, which the operator moves on.
using Kernel = std::function<void(const Operands& operands, uint64_t* random)>;

struct Computable {
  Graph graph;
  std::vector<Kernel> kernels;                       // by operator
  std::vector<size_t> elements;                      // by storage
  std::vector<std::pair<StorageId, Numbers>> given;  // the rest of what is given is 0
};

// The training step of a network of fully connected layers, batch normalisation, relu, tanh, dropout, sums, products
// and softmax; weights and images are drawn by `seed`.
Computable MakeComputable(const Network& network, const TrainingOptions& options, uint64_t seed);

// The mirrored graph of the same step: copies do what the operators do of which they are copies; random ones begin with
// the state that they read.
Computable MirroredComputable(const Computable& step, const MirroredGraph& mirrored);

// What is in the storages that are kept, by storage; of the others nothing.
std::vector<Numbers> Execute(const Computable& step, const Schedule& schedule);

// Bit by bit.
bool SameNumbers(const std::vector<Numbers>& a, const std::vector<Numbers>& b);

}  // namespace hotpack::remat
