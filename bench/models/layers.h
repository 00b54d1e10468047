// Networks as tables of layers, and the packing instance of one propagation: what a framework that gives every tensor a
// block of its own asks for. Sizes follow from the layers' shapes alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "packer/types.h"

namespace hotpack::bench {

// Of one image. A vector of n values is {n, 1, 1}.
struct Shape {
  int64_t channels = 1;
  int64_t height = 1;
  int64_t width = 1;
};

using Tensor = int;  // the ordinal of a tensor in its network

// A square window that is moved over the image. With `cover_all` a last window that reaches over the edge counts, as in
// the pooling of Chainer and Caffe; without, it does not.
struct Window {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t pad = 0;
  bool cover_all = false;
};

// A network for mini-batches of a given size. Elements are 4 bytes; every block is rounded up to 512 bytes, the unit of
// Chainer's memory pool. Every layer is given tensors made before it. Not thread-safe.
class Network {
 public:
  explicit Network(int64_t batch) : batch_(batch) {}

  // The whole workspace of a convolution (Sekiyama 2018, §5.1: 8 MB by default). Chainer 3 takes this much for every
  // convolution, whatever its algorithm then needs.
  static constexpr Bytes kWorkspace = Bytes{8} << 20;

  Tensor Input(Shape shape);  // the images; held by the caller to the end
  Tensor Labels();            // one number an image; held by the caller to the end
  Tensor Conv(Tensor in, int64_t channels, Window window);
  Tensor Pool(Tensor in, Window window);
  Tensor Pointwise(Tensor in);  // relu, local response normalisation, softmax: an output of the input's shape
  Tensor FullyConnected(Tensor in, int64_t values);
  Tensor Concat(const std::vector<Tensor>& in);  // along the channels
  Tensor Loss(Tensor in, Tensor labels);         // one number

  // Forward propagation alone. The clock moves by one at each allocation and each release (§4.1). A layer allocates its
  // output, then its workspace, which it releases at its end; a tensor is released when the last layer that reads it is
  // done, or when it was made if none does. O(layers).
  Instance Inference() const;

  // Forward and backward. Outputs are kept for the backward pass, which visits the layers in reverse: a layer allocates
  // the gradients of its inputs where there is none yet (and, for a convolution, a workspace at a time for the gradients
  // of weights and of input), then releases its output and its output's gradient. Gradients of weights are kept over the
  // iteration by the framework and are not in the instance (Figure 2: only what is released by the end of a propagation is
  // optimised). O(layers).
  Instance Training() const;

  Shape ShapeOf(Tensor tensor) const { return tensors_[static_cast<size_t>(tensor)].shape; }

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
  };

  Tensor AddTensor(Shape shape, int64_t images, bool given);
  Tensor AddLayer(std::vector<Tensor> in, Shape out, Bytes workspace = 0);
  Bytes BytesOf(Tensor tensor) const;

  int64_t batch_;
  std::vector<TensorInfo> tensors_;
  std::vector<Layer> layers_;
};

}  // namespace hotpack::bench
