// Builds networks from named layers: shapes, work, and the tensors that their gradients read.
//
// The gradients read (as cuDNN's and MXNet's operators declare it):
//   convolution, matrix product                   inputs and weights
//   batch and layer normalisation                 input, statistics and scale
//   relu, tanh, sigmoid, softmax                  output alone
//   gelu                                          input
//   max pooling                                   input and output
//   multiplication                                both factors
//   addition, concatenation, average pooling      nothing
//   dropout                                       its mask
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

// The window of a convolution or a pooling. Padding keeps ⌈size / stride⌉ places ("same"), or there is none ("valid").
struct Window {
  int64_t height = 1;
  int64_t width = 1;
  int64_t stride = 1;
  bool pad = true;
};
constexpr Window Square(int64_t size, int64_t stride = 1, bool pad = true) { return {size, size, stride, pad}; }

// Appends layers to a network. Layers are named by their kind and a number from 1 on. The first fault is returned by
// Finish(): a size below 1 or beyond 2^62, or more than kMaxLayers. Tensors built after a fault are invalid. Not
// thread-safe.
class NetworkBuilder {
 public:
  // `convolution_workspace`: the most bytes of a convolution's workspace, which holds its unfolded input: height ·
  // width of the window · channels, for each place. 0: no workspace, as with cuDNN's implicit algorithms.
  explicit NetworkBuilder(Bytes convolution_workspace = 0) : convolution_workspace_(convolution_workspace) {}

  TensorId Data(std::string name, std::vector<int64_t> shape, Bytes element = kElement);
  TensorId Weight(std::vector<int64_t> shape, std::string name = "");
  TensorId NewTensor(std::string name, std::vector<int64_t> shape, TensorRole role, Bytes element = kElement);
  const std::vector<int64_t>& ShapeOf(TensorId tensor) const {
    return network_.tensors[static_cast<size_t>(tensor)].shape;
  }
  int64_t ElementsOf(TensorId tensor) const;

  // Appends any layer, with a generated name if it has none. Returns its first output.
  TensorId Add(Layer layer);
  // Returns the name that Add() would give the next layer of this kind.
  std::string NextName(const std::string& kind) const;

  // Images: batch, channels, height, width.
  TensorId Convolution(TensorId x, int64_t channels, Window window, bool bias = false);
  // Window and stride are `factor`; the result is larger by it.
  TensorId Deconvolution(TensorId x, int64_t channels, int64_t factor, bool bias = false);
  TensorId MaxPool(TensorId x, Window window);
  TensorId AveragePool(TensorId x, Window window);
  TensorId GlobalPool(TensorId x);
  TensorId BatchNorm(TensorId x);  // over all dimensions except the second
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
  // Multiplies rows (all dimensions but the last) by a matrix of weights. `weight`: an existing matrix; -1: a new one.
  TensorId FullyConnected(TensorId x, int64_t outputs, bool bias = true, TensorId weight = -1);
  // Changes the shape of the tensor for later layers. Adds no layer.
  TensorId Reshape(TensorId x, std::vector<int64_t> shape);
  TensorId Flatten(TensorId x);  // for FullyConnected(): rows of the first dimension
  // Multiplies batches of matrices, over the last two dimensions: a · b, or a · bᵀ.
  TensorId BatchProduct(TensorId a, TensorId b, bool transposed);
  // Looks up rows of a table of weights, one for each number in `x`.
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
