// The tensors that gradients read, where frameworks differ.
#pragma once

#include "remat/networks/network.h"
#include "remat/networks/training_graph.h"

namespace hotpack::remat {

// Changes the network to MXNet 0.12's declarations with cuDNN. The gradients of relu, sigmoid and tanh read the layer's
// input and output (ActivationProp::DeclareBackwardDependency). Dropout's mask has as many bytes as its input.
void DeclareAsMxnet(Network* network);

// MXNet's SoftmaxOutput is the last softmax and the loss in one: the gradient of its input takes over the input's
// memory. The first function removes the softmax, before the step is made. The second lets the loss work in place.
void DeclareSoftmaxOutput(Network* network);
void DeclareSoftmaxOutput(const Network& network, Training* training);

// Sets Operator::masks: for gradients of relu, and for the readers of dropout's mask, if these storages have 4 bytes
// per element.
void MarkMasks(const Network& network, Training* training);

}  // namespace hotpack::remat
