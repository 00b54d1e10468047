// Layers by name: shapes, work, and what their gradients read.
//
// Declarations (cuDNN's and MXNet's operators): convolution, product of matrices: inputs and weights; batch and layer
// normalisation: input, statistics and scale; relu, tanh, sigmoid, softmax: output alone; gelu: input; max pooling:
// input and output; multiplication: both factors; addition, concatenation, average pooling: nothing; dropout: its mask.
// Elements have 4 bytes, masks 1 byte.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "remat/networks/network.h"

namespace hotpack::remat {

inline constexpr Bytes kElement = 4;
inline constexpr size_t kMaxLayers = 1'000'000;

// What a convolution or a pooling looks at. Padding keeps ⌈size / stride⌉ places ("same"), or there is none ("valid").
struct Window {
  int64_t height = 1;
  int64_t width = 1;
  int64_t stride = 1;
  bool pad = true;
};
constexpr Window Square(int64_t size, int64_t stride = 1, bool pad = true) { return {size, size, stride, pad}; }

// Layers are named by their kind and a number from 1 on. Sizes that cannot be (beyond 2^62, below 1), more than
// kMaxLayers: the first such fault is Finish()'s answer, and what is built after it means nothing. Not thread-safe.
class NetworkBuilder {
 public:
  // Convolutions get a workspace for their input unfolded (height · width of the window · its channels, for each
  // place), at most this, in bytes; 0: they need none, as cuDNN's implicit algorithms do.
  explicit NetworkBuilder(Bytes convolution_workspace = 0) : convolution_workspace_(convolution_workspace) {}

  TensorId Data(std::string name, std::vector<int64_t> shape, Bytes element = kElement);
  TensorId Weight(std::vector<int64_t> shape, std::string name = "");
  TensorId NewTensor(std::string name, std::vector<int64_t> shape, TensorRole role, Bytes element = kElement);
  const std::vector<int64_t>& ShapeOf(TensorId tensor) const {
    return network_.tensors[static_cast<size_t>(tensor)].shape;
  }
  int64_t ElementsOf(TensorId tensor) const;

  // Any layer; its name is made if it has none. The first output.
  TensorId Add(Layer layer);
  // The name that Add() would give the next layer of this kind.
  std::string NextName(const std::string& kind) const;

  // Images: batch, channels, height, width.
  TensorId Convolution(TensorId x, int64_t channels, Window window, bool bias = false);
  TensorId Deconvolution(TensorId x, int64_t channels, int64_t factor,
                         bool bias = false);  // window and stride of `factor`: larger by it
  TensorId MaxPool(TensorId x, Window window);
  TensorId AveragePool(TensorId x, Window window);
  TensorId GlobalPool(TensorId x);
  TensorId BatchNorm(TensorId x);  // over all but the second dimension
  TensorId Concat(const std::vector<TensorId>& parts, size_t dimension = 1);

  // Any shape.
  TensorId Relu(TensorId x) { return FromOutput("relu", x, 1); }
  TensorId Tanh(TensorId x) { return FromOutput("tanh", x, 8); }
  TensorId Sigmoid(TensorId x) { return FromOutput("sigmoid", x, 8); }
  TensorId Softmax(TensorId x) { return FromOutput("softmax", x, 10); }  // over the last dimension
  TensorId Gelu(TensorId x);
  TensorId Dropout(TensorId x);
  TensorId Sum(TensorId a, TensorId b);       // of the same shape
  TensorId Multiply(TensorId a, TensorId b);  // of the same shape
  TensorId LayerNorm(TensorId x);             // over the last dimension
  // Rows (all dimensions but the last) times a matrix of weights; `weight`: an existing one.
  TensorId FullyConnected(TensorId x, int64_t outputs, bool bias = true, TensorId weight = -1);
  // No layer: another view of the same tensor, and its shape from now on.
  TensorId Reshape(TensorId x, std::vector<int64_t> shape);
  TensorId Flatten(TensorId x);  // for FullyConnected(): rows of the first dimension
  // Products of batches of matrices, of the last two dimensions: a · b, or a · bᵀ.
  TensorId BatchProduct(TensorId a, TensorId b, bool transposed);
  // Rows of a table of weights, one for each of the numbers in `x`.
  TensorId Embedding(TensorId x, int64_t rows, int64_t columns);

  void Result(TensorId tensor, TensorId labels = -1) { network_.results.push_back({tensor, labels}); }
  absl::StatusOr<Network> Finish();

 private:
  Layer Start(const std::string& kind) const;
  TensorId Output(Layer* layer, std::vector<int64_t> shape);
  TensorId FromOutput(const std::string& kind, TensorId x, double flops_an_element);
  TensorId Normalise(const std::string& kind, TensorId x, int64_t channels, int64_t groups);
  TensorId Pool(const std::string& kind, TensorId x, Window window, bool reads_both);
  std::vector<int64_t> Places(TensorId x, int64_t channels, Window window);
  void Fail(std::string what);

  Network network_;
  std::vector<std::pair<std::string, int64_t>> counts_;  // by kind
  Bytes convolution_workspace_;
  absl::Status fault_;
};

}  // namespace hotpack::remat
