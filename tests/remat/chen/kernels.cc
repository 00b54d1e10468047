// The operators of a training step on arrays. Results are computed elsewhere and then stored, so that each may work in
// place.
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>

#include "tests/remat/chen/numeric.h"

namespace hotpack::remat {
namespace {

uint64_t Draw(uint64_t* state) {  // splitmix64
  uint64_t z = (*state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

struct Step {
  Network network;
  Training training;
};

// One layer, with access to its operands.
class LayerRun {
 public:
  LayerRun(const Step& step, size_t layer, const Operator& op, const Operands& operands)
      : step_(step), layer_(step.network.layers[layer]), op_(op), operands_(operands) {}

  void Forward(uint64_t* random) {
    const TensorId x = layer_.inputs[0], y = layer_.outputs[0];
    const size_t n = Size(y);
    Numbers made(n);
    if (layer_.kind == "fully_connected") {
      const size_t in = Last(x), out = Last(y);
      for (size_t r = 0; r < n / out; ++r) {
        for (size_t o = 0; o < out; ++o) {
          float sum = layer_.weights.size() > 1 ? At(layer_.weights[1])[o] : 0;
          for (size_t i = 0; i < in; ++i) sum += At(x)[r * in + i] * At(layer_.weights[0])[o * in + i];
          made[r * out + o] = sum;
        }
      }
    } else if (layer_.kind == "batch_norm") {
      NormForward(&made);
    } else if (layer_.kind == "softmax") {
      for (size_t r = 0; r < n; r += Last(y)) {
        const float most = *std::max_element(At(x) + r, At(x) + r + Last(y));
        float sum = 0;
        for (size_t i = r; i < r + Last(y); ++i) sum += made[i] = std::exp(At(x)[i] - most);
        for (size_t i = r; i < r + Last(y); ++i) made[i] /= sum;
      }
    } else if (layer_.kind == "dropout") {
      float* mask = At(layer_.outputs[1]);
      for (size_t i = 0; i < n; ++i) {
        mask[i] = (Draw(random) >> 63) != 0 ? 2.0f : 0.0f;
        made[i] = At(x)[i] * mask[i];
      }
    } else {
      for (size_t i = 0; i < n; ++i) made[i] = Pointwise(i);
    }
    std::copy(made.begin(), made.end(), At(y));
  }

  void Backward() {
    const TensorId x = layer_.inputs[0], y = layer_.outputs[0];
    const float* gradient = operands_.at(step_.training.gradient_of[static_cast<size_t>(y)]);
    const size_t n = Size(y);
    Numbers made(Size(x)), other(n);
    if (layer_.kind == "fully_connected") {
      FullBackward(gradient);
      return;
    }
    if (layer_.kind == "batch_norm") {
      NormBackward(gradient);
      return;
    }
    for (size_t r = 0; r < n; r += Last(y)) {
      float dot = 0;
      if (layer_.kind == "softmax") {
        for (size_t i = r; i < r + Last(y); ++i) dot += gradient[i] * At(y)[i];
      }
      for (size_t i = r; i < r + Last(y); ++i) {
        if (layer_.kind == "softmax") made[i] = (gradient[i] - dot) * At(y)[i];
        if (layer_.kind == "dropout") made[i] = gradient[i] * At(layer_.outputs[1])[i];
        if (layer_.kind == "relu") made[i] = At(y)[i] > 0 ? gradient[i] : 0;
        if (layer_.kind == "tanh") made[i] = gradient[i] * (1 - At(y)[i] * At(y)[i]);
        if (layer_.kind == "sum") made[i] = other[i] = gradient[i];
        if (layer_.kind == "multiply")
          made[i] = gradient[i] * At(layer_.inputs[1])[i], other[i] = gradient[i] * At(x)[i];
      }
    }
    Give(x, made);
    if (layer_.inputs.size() > 1) Give(layer_.inputs[1], other);
  }

 private:
  const Tensor& Of(TensorId tensor) const { return step_.network.tensors[static_cast<size_t>(tensor)]; }
  size_t Size(TensorId tensor) const {
    size_t size = 1;
    for (int64_t length : Of(tensor).shape) size *= static_cast<size_t>(length);
    return size;
  }
  size_t Last(TensorId tensor) const { return static_cast<size_t>(Of(tensor).shape.back()); }
  float* At(TensorId tensor) const { return operands_.at(step_.training.storage_of[static_cast<size_t>(tensor)]); }

  float Pointwise(size_t i) const {
    const float x = At(layer_.inputs[0])[i];
    if (layer_.kind == "relu") return std::max(x, 0.0f);
    if (layer_.kind == "tanh") return std::tanh(x);
    if (layer_.kind == "sum") return x + At(layer_.inputs[1])[i];
    if (layer_.kind == "multiply") return x * At(layer_.inputs[1])[i];
    return std::nanf("");
  }

  // Stores a gradient, or adds it to the first one, or stores it where another operator will add it. Does nothing if no
  // operator uses it.
  void Give(TensorId tensor, const Numbers& gradient) {
    StorageId id = step_.training.gradient_of[static_cast<size_t>(tensor)];
    const bool adds = std::find(op_.updates.begin(), op_.updates.end(), id) != op_.updates.end();
    if (id < 0) return;
    if (!operands_.contains(id)) {
      const std::vector<Storage>& storages = step_.training.graph.storages;
      const std::string part = storages[static_cast<size_t>(id)].name + ".";
      const auto found = std::find_if(op_.writes.begin(), op_.writes.end(), [&](StorageId each) {
        return storages[static_cast<size_t>(each)].name.starts_with(part);
      });
      if (found == op_.writes.end()) return;
      id = *found;
    }
    float* to = operands_.at(id);
    for (size_t i = 0; i < gradient.size(); ++i) to[i] = adds ? to[i] + gradient[i] : gradient[i];
  }

  void FullBackward(const float* gradient) {
    const TensorId x = layer_.inputs[0], weight = layer_.weights[0];
    const size_t in = Last(x), out = Last(layer_.outputs[0]), rows = Size(x) / in;
    Numbers of_x(rows * in), of_weight(out * in), of_bias(out);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t o = 0; o < out; ++o) {
        of_bias[o] += gradient[r * out + o];
        for (size_t i = 0; i < in; ++i) {
          of_x[r * in + i] += gradient[r * out + o] * At(weight)[o * in + i];
          of_weight[o * in + i] += gradient[r * out + o] * At(x)[r * in + i];
        }
      }
    }
    Give(x, of_x);
    Give(weight, of_weight);
    if (layer_.weights.size() > 1) Give(layer_.weights[1], of_bias);
  }

  // Rows of channels. Statistics: means, then the divisors of deviations.
  void NormForward(Numbers* made) {
    const TensorId x = layer_.inputs[0];
    const size_t channels = Last(x), rows = Size(x) / channels;
    float* statistics = At(layer_.outputs[1]);
    for (size_t c = 0; c < channels; ++c) {
      float mean = 0, square = 0;
      for (size_t r = 0; r < rows; ++r) mean += At(x)[r * channels + c] / static_cast<float>(rows);
      for (size_t r = 0; r < rows; ++r)
        square += std::pow(At(x)[r * channels + c] - mean, 2.0f) / static_cast<float>(rows);
      statistics[c] = mean;
      statistics[channels + c] = std::sqrt(square + 1e-5f);
      for (size_t r = 0; r < rows; ++r) {
        const float normal = (At(x)[r * channels + c] - mean) / statistics[channels + c];
        (*made)[r * channels + c] = normal * At(layer_.weights[0])[c] + At(layer_.weights[0])[channels + c];
      }
    }
  }

  void NormBackward(const float* gradient) {
    const TensorId x = layer_.inputs[0];
    const size_t channels = Last(x), rows = Size(x) / channels;
    const float* statistics = At(layer_.outputs[1]);
    Numbers of_x(rows * channels), of_scale(2 * channels);
    for (size_t c = 0; c < channels; ++c) {
      const auto normal = [&](size_t r) {
        return (At(x)[r * channels + c] - statistics[c]) / statistics[channels + c];
      };
      for (size_t r = 0; r < rows; ++r) {
        of_scale[c] += gradient[r * channels + c] * normal(r);
        of_scale[channels + c] += gradient[r * channels + c];
      }
      for (size_t r = 0; r < rows; ++r) {
        const float centred =
            gradient[r * channels + c] - (of_scale[channels + c] + normal(r) * of_scale[c]) / static_cast<float>(rows);
        of_x[r * channels + c] = At(layer_.weights[0])[c] / statistics[channels + c] * centred;
      }
    }
    Give(x, of_x);
    Give(layer_.weights[0], of_scale);
  }

  const Step& step_;
  const Layer& layer_;
  const Operator& op_;
  const Operands& operands_;
};

// Cross entropy: the mean over the rows of -log of the probability of the row's label.
Kernel LossKernel(const std::shared_ptr<const Step>& step, const Result& result) {
  return [step, result](const Operands& operands, uint64_t*) {
    const auto storage = [&](TensorId tensor) { return step->training.storage_of[static_cast<size_t>(tensor)]; };
    const std::vector<int64_t>& shape = step->network.tensors[static_cast<size_t>(result.tensor)].shape;
    const auto rows = static_cast<size_t>(shape[0]), classes = static_cast<size_t>(shape[1]);
    const StorageId gradient_id = step->training.gradient_of[static_cast<size_t>(result.tensor)];
    float* gradient = operands.at(gradient_id);
    float loss = 0;
    for (size_t r = 0; r < rows; ++r) {
      const auto label = static_cast<size_t>(operands.at(storage(result.labels))[r]);
      const float p = operands.at(storage(result.tensor))[r * classes + label];
      loss -= std::log(p) / static_cast<float>(rows);
      for (size_t c = 0; c < classes; ++c)
        gradient[r * classes + c] = c == label ? -1 / (p * static_cast<float>(rows)) : 0;
    }
    for (const auto& [id, at] : operands) {
      const bool is_loss = id != gradient_id && id != storage(result.tensor) && id != storage(result.labels);
      if (is_loss) *at = loss;
    }
  };
}

// A gradient more is added to the first one.
Kernel AdditionKernel(const Operator& op, size_t elements) {
  return [op, elements](const Operands& operands, uint64_t*) {
    for (size_t e = 0; e < elements; ++e) operands.at(op.updates[0])[e] += operands.at(op.reads[0])[e];
  };
}

// Descent with momentum.
Kernel UpdateKernel(const Operator& op, size_t elements) {
  return [op, elements](const Operands& operands, uint64_t*) {
    float* weight = operands.at(op.updates[0]);
    float* moment = operands.at(op.updates[1]);
    for (size_t e = 0; e < elements; ++e) {
      moment[e] = 0.9f * moment[e] + operands.at(op.reads[0])[e];
      weight[e] -= 0.1f * moment[e];
    }
  };
}

// Weights and images from -1 to 1; labels.
void DrawGiven(const Step& step, uint64_t seed, Computable* result) {
  std::mt19937_64 random(seed);
  for (size_t t = 0; t < step.network.tensors.size(); ++t) {
    const Tensor& tensor = step.network.tensors[t];
    const StorageId id = step.training.storage_of[t];
    if (id < 0) continue;
    if (tensor.role == TensorRole::kMask) result->elements[static_cast<size_t>(id)] = static_cast<size_t>(tensor.bytes);
    if (!result->graph.storages[static_cast<size_t>(id)].given) continue;
    Numbers numbers(result->elements[static_cast<size_t>(id)]);
    for (float& number : numbers) {
      const auto part = static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1);
      number = tensor.name == "labels" ? std::floor(2.5f * (part + 1)) : part;
    }
    result->given.emplace_back(id, std::move(numbers));
  }
}

void AddLayerKernels(const std::shared_ptr<const Step>& step, Computable* result) {
  for (size_t layer = 0; layer < step->network.layers.size(); ++layer) {
    const OperatorId forward = step->training.forward_of[layer], backward = step->training.backward_of[layer];
    if (forward >= 0) {
      const auto f = static_cast<size_t>(forward);
      result->kernels[f] = [step, layer, op = result->graph.operators[f]](const Operands& operands, uint64_t* random) {
        LayerRun(*step, layer, op, operands).Forward(random);
      };
    }
    if (backward >= 0) {
      const auto b = static_cast<size_t>(backward);
      result->kernels[b] = [step, layer, op = result->graph.operators[b]](const Operands& operands, uint64_t*) {
        LayerRun(*step, layer, op, operands).Backward();
      };
    }
  }
}

}  // namespace

Computable MakeComputable(const Network& network, const TrainingOptions& options, uint64_t seed) {
  const auto step = std::make_shared<const Step>(Step{network, MakeTraining(network, options).value()});
  Computable result;
  result.graph = step->training.graph;
  result.kernels.resize(result.graph.operators.size());
  for (const Storage& storage : result.graph.storages) {
    result.elements.push_back(static_cast<size_t>(storage.bytes) / sizeof(float));
  }
  DrawGiven(*step, seed, &result);
  AddLayerKernels(step, &result);
  size_t losses = 0;
  for (size_t i = 0; i < result.kernels.size(); ++i) {
    const Operator& op = result.graph.operators[i];
    if (result.kernels[i]) continue;
    if (op.name.starts_with("loss")) {
      result.kernels[i] = LossKernel(step, network.results[losses++]);
      continue;
    }
    const size_t elements = result.elements[static_cast<size_t>(op.reads[0])];
    result.kernels[i] = op.phase == Phase::kUpdate ? UpdateKernel(op, elements) : AdditionKernel(op, elements);
  }
  return result;
}

}  // namespace hotpack::remat
