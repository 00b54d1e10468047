#include "remat/networks/network.h"

#include <algorithm>

namespace hotpack::remat {

Bytes FeatureMapBytes(const Network& network) {
  Bytes sum = 0;
  for (const Tensor& tensor : network.tensors) {
    if (tensor.role == TensorRole::kFeatureMap || tensor.role == TensorRole::kMask) sum += tensor.bytes;
  }
  return sum;
}

Bytes WeightBytes(const Network& network) {
  Bytes sum = 0;
  for (const Tensor& tensor : network.tensors) {
    if (tensor.role == TensorRole::kWeight) sum += tensor.bytes;
  }
  return sum;
}

int64_t CountOf(const Network& network, const std::string& kind) {
  return std::count_if(network.layers.begin(), network.layers.end(),
                       [&kind](const Layer& layer) { return layer.kind == kind; });
}

}  // namespace hotpack::remat
