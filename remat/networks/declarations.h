// What gradients read, where frameworks differ.
#pragma once

#include "remat/networks/network.h"
#include "remat/networks/training_graph.h"

namespace hotpack::remat {

// As MXNet 0.12 with cuDNN declares it: the gradients of relu, sigmoid and tanh read the layer's input as well as its
// output (ActivationProp::DeclareBackwardDependency), and dropout's mask has as many bytes as its input.
void DeclareAsMxnet(Network* network);

// MXNet's SoftmaxOutput is the last softmax and the loss in one: the gradient of what it is of takes over that one's
// memory. The first function takes the softmax away, before the step is made; the second lets the loss work in place.
void DeclareSoftmaxOutput(Network* network);
void DeclareSoftmaxOutput(const Network& network, Training* training);

// Operator::masks: what the gradient of a relu reads of the layer, and who reads a dropout's mask, as far as these have
// 4 bytes an element.
void MarkMasks(const Network& network, Training* training);

}  // namespace hotpack::remat
