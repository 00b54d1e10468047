// Networks as tables of layers, and the requests of one propagation in a framework that gives every tensor its own
// block. Sizes follow from the layers' shapes alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/models/tape.h"
#include "packer/types.h"

namespace hotpack::bench {

// The shape of one image. A vector of n values is {n, 1, 1}.
struct Shape {
  int64_t channels = 1;
  int64_t height = 1;
  int64_t width = 1;
};

using Tensor = int;  // the ordinal of a tensor in its network

// A window that moves over the image, square unless `width` is given. With `cover_all` a last window across the edge
// counts, as in the pooling of Chainer and Caffe.
struct Window {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t pad = 0;
  bool cover_all = false;
  int64_t width = 0;      // 0: `size`
  int64_t width_pad = 0;  // only with a width
};

// A network for mini-batches of a given size. Elements have 4 bytes. Every layer's inputs must be made before it. Not
// thread-safe.
class Network {
 public:
  explicit Network(int64_t batch) : batch_(batch) {}

  // The workspace of every convolution (Sekiyama 2018, §5.1: 8 MB by default). Chainer 3 takes this much whatever the
  // algorithm needs.
  static constexpr Bytes kWorkspace = Bytes{8} << 20;

  Tensor Input(Shape shape);  // the images; held by the caller to the end
  Tensor Labels();            // one number an image; held by the caller to the end
  Tensor Conv(Tensor in, int64_t channels, Window window, bool bias = true);
  Tensor Pool(Tensor in, Window window);
  Tensor Pointwise(Tensor in);  // relu, softmax: an output of the input's shape
  Tensor Normalise(Tensor in);  // local response normalisation: training keeps its scale, of the input's shape
  Tensor BatchNorm(Tensor in);  // two parameters and two averages per channel
  Tensor Dropout(Tensor in);    // training keeps a mask of the input's shape; inference does nothing
  Tensor FullyConnected(Tensor in, int64_t values);
  Tensor Concat(const std::vector<Tensor>& in);  // along the channels
  Tensor Add(Tensor a, Tensor b);
  Tensor Loss(Tensor in, Tensor labels);  // one number
  void HoldWeights(int64_t elements);     // of layers outside this propagation

  // Returns the forward propagation alone as a packing instance. A layer allocates its output, then its workspace,
  // which it releases at its end. A tensor is released after the last layer that reads it, or when it was made if no
  // layer reads it. O(layers).
  Instance Inference() const;

  // Returns the forward and backward propagation. O(layers).
  //  1. Outputs are kept for the backward pass, which visits the layers in reverse.
  //  2. A layer allocates the gradients of its inputs that do not exist yet. A convolution also allocates one workspace
  //     each for the gradients of weights and of input. Then the layer releases its output and its output's gradient.
  //  3. Gradients of weights are not in the instance, because the framework keeps them over the iteration (Figure 2:
  //     only blocks released by the end of a propagation are optimised).
  //  4. Dropout is left out, because its masks are small.
  Instance Training() const;

  // Returns a whole run of so many marked iterations, weights included, with the requests of Chainer 3
  // (bench/models/run.cc). O(layers · iterations).
  Trace RecordInference(int iterations) const;
  Trace RecordTraining(int iterations) const;  // with the momentum method, one state per weight

  Shape ShapeOf(Tensor tensor) const { return tensors_[static_cast<size_t>(tensor)].shape; }
  int64_t WeightCount() const;  // elements of all weights, averages not included

 private:
  struct TensorInfo {
    Shape shape;
    int64_t images;      // 1 if it is not a mini-batch
    bool given = false;  // the caller made it and holds it
  };
  struct Layer {
    std::vector<Tensor> in;
    Tensor out = 0;
    Bytes workspace = 0;
    std::vector<int64_t> weights{};   // elements of each
    std::vector<int64_t> averages{};  // elements of each: live as long as the weights, and have no gradient
    std::vector<int64_t> kept{};  // elements of each: kept from a training's forward to the end of its backward pass
    bool dropout = false;
  };

  class Run;  // bench/models/run.cc

  Tensor AddTensor(Shape shape, int64_t images, bool given);
  Tensor AddLayer(Layer layer, Shape out);
  int64_t ElementsOf(Tensor tensor) const;
  Bytes BytesOf(Tensor tensor) const;
  // Returns for each tensor the one that holds its values if dropout does nothing.
  std::vector<size_t> WithoutDropout() const;
  // Runs one forward propagation that keeps nothing.
  void Infer(Tape* tape) const;

  int64_t batch_;
  std::vector<TensorInfo> tensors_;
  std::vector<Layer> layers_;
  std::vector<int64_t> held_;
};

}  // namespace hotpack::bench
