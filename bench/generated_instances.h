// Instances of any size: deterministic, the same on every machine.
#pragma once

#include <cstdint>

#include "packer/types.h"

namespace hotpack::bench {

// A forward and backward pass over n/3 layers: outputs that nest like brackets, gradients, workspaces of one layer;
// what is left of n are more workspaces. O(n).
Instance TrainingInstance(int64_t n);

// n blocks: log-uniform lives of 1 to n/10 clock values and sizes of 512 bytes to 2 MiB, begun anywhere in n clock
// values. Harder than what a training job asks for. O(n).
Instance RandomInstance(int64_t n);

// A rectangle cut into n blocks: the height of the whole is the load at every moment, so the lower bound is reached by
// one placement, the one that was cut, and hardly by another. Harder still. n from 1 on. O(n).
Instance CutInstance(int64_t n);

}  // namespace hotpack::bench
