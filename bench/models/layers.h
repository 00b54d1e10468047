// Networks as tables of layers, and what one propagation of them asks for: a framework that gives every tensor a block
// of its own. Sizes follow from the layers' shapes alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/models/tape.h"
#include "packer/types.h"

namespace hotpack::bench {

// Of one image. A vector of n values is {n, 1, 1}.
struct Shape {
  int64_t channels = 1;
  int64_t height = 1;
  int64_t width = 1;
};

using Tensor = int;  // the ordinal of a tensor in its network

// A window that is moved over the image, square unless `width` is given. With `cover_all` a last window that reaches
// over the edge counts, as in the pooling of Chainer and Caffe; without, it does not.
struct Window {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t pad = 0;
  bool cover_all = false;
  int64_t width = 0;      // 0: `size`
  int64_t width_pad = 0;  // only with a width
};

// A network for mini-batches of a given size. Elements are 4 bytes. Every layer is given tensors made before it. Not
// thread-safe.
class Network {
 public:
  explicit Network(int64_t batch) : batch_(batch) {}

  // The whole workspace of a convolution (Sekiyama 2018, §5.1: 8 MB by default). Chainer 3 takes this much for every
  // convolution, whatever its algorithm then needs.
  static constexpr Bytes kWorkspace = Bytes{8} << 20;

  Tensor Input(Shape shape);  // the images; held by the caller to the end
  Tensor Labels();            // one number an image; held by the caller to the end
  Tensor Conv(Tensor in, int64_t channels, Window window, bool bias = true);
  Tensor Pool(Tensor in, Window window);
  Tensor Pointwise(Tensor in);  // relu, softmax: an output of the input's shape
  Tensor Normalise(Tensor in);  // local response normalisation: in training its scale is kept, of the input's shape
  Tensor BatchNorm(Tensor in);  // two parameters and two averages a channel
  Tensor Dropout(Tensor in);    // in training a mask of the input's shape is kept; in inference it does nothing
  Tensor FullyConnected(Tensor in, int64_t values);
  Tensor Concat(const std::vector<Tensor>& in);  // along the channels
  Tensor Add(Tensor a, Tensor b);
  Tensor Loss(Tensor in, Tensor labels);  // one number
  void HoldWeights(int64_t elements);     // of layers that are not in this propagation

  // Forward propagation alone, as a packing instance. A layer allocates its output, then its workspace, which it
  // releases at its end; a tensor is released when the last layer that reads it is done, or when it was made if none
  // does. O(layers).
  Instance Inference() const;

  // Forward and backward. Outputs are kept for the backward pass, which visits the layers in reverse: a layer allocates
  // the gradients of its inputs where there is none yet (and, for a convolution, a workspace at a time for the
  // gradients of weights and of input), then releases its output and its output's gradient. Gradients of weights are
  // kept over the iteration by the framework and are not in the instance (Figure 2: only what is released by the end of
  // a propagation is optimised), and dropout is left out, for its masks are small. O(layers).
  Instance Training() const;

  // A whole run of that many marked iterations, weights included: what Chainer 3 asks for (bench/models/run.cc).
  // O(layers · iterations).
  Trace RecordInference(int iterations) const;
  Trace RecordTraining(int iterations) const;  // with the momentum method, one state a weight

  Shape ShapeOf(Tensor tensor) const { return tensors_[static_cast<size_t>(tensor)].shape; }
  int64_t WeightCount() const;  // elements of all weights, averages not included

 private:
  struct TensorInfo {
    Shape shape;
    int64_t images;      // 1 if it is no mini-batch
    bool given = false;  // comes from the caller, who holds it
  };
  struct Layer {
    std::vector<Tensor> in;
    Tensor out = 0;
    Bytes workspace = 0;
    std::vector<int64_t> weights{};   // elements of each
    std::vector<int64_t> averages{};  // elements of each: live as long as the weights, and have no gradient
    std::vector<int64_t> kept{};      // elements of each: from a training's forward to the end of its backward pass
    bool dropout = false;
  };

  class Run;  // bench/models/run.cc

  Tensor AddTensor(Shape shape, int64_t images, bool given);
  Tensor AddLayer(Layer layer, Shape out);
  int64_t ElementsOf(Tensor tensor) const;
  Bytes BytesOf(Tensor tensor) const;
  // For each tensor the one that holds its values where dropout does nothing.
  std::vector<size_t> WithoutDropout() const;
  // One forward propagation that keeps nothing.
  void Infer(Tape* tape) const;

  int64_t batch_;
  std::vector<TensorInfo> tensors_;
  std::vector<Layer> layers_;
  std::vector<int64_t> held_;
};

}  // namespace hotpack::bench
