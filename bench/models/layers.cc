#include "bench/models/layers.h"

#include <utility>

namespace hotpack::bench {
namespace {

constexpr Bytes kElement = 4;
constexpr Bytes kUnit = 512;

int64_t Extent(int64_t in, const Window& window) {
  const int64_t room = in + 2 * window.pad - window.size;
  return (window.cover_all ? room + window.stride - 1 : room) / window.stride + 1;
}

// Blocks on a clock that moves with every allocation and release.
class Clockwork {
 public:
  size_t Allocate(Bytes bytes) {
    Block block;
    block.size = (bytes + kUnit - 1) / kUnit * kUnit;
    block.residency.push_back({clock_++, 0});
    instance_.blocks.push_back(std::move(block));
    return instance_.blocks.size() - 1;
  }
  void Release(size_t block) { instance_.blocks[block].residency[0].end = clock_++; }
  void Use(Bytes bytes) {
    if (bytes > 0) Release(Allocate(bytes));
  }
  Instance Take() { return std::move(instance_); }

 private:
  Clock clock_ = 1;
  Instance instance_;
};

}  // namespace

Tensor Network::AddTensor(Shape shape, int64_t images, bool given) {
  tensors_.push_back({shape, images, given});
  return static_cast<Tensor>(tensors_.size()) - 1;
}

Tensor Network::AddLayer(std::vector<Tensor> in, Shape out, Bytes workspace) {
  const Tensor tensor = AddTensor(out, batch_, false);
  layers_.push_back({std::move(in), tensor, workspace});
  return tensor;
}

Bytes Network::BytesOf(Tensor tensor) const {
  const TensorInfo& info = tensors_[static_cast<size_t>(tensor)];
  return kElement * info.images * info.shape.channels * info.shape.height * info.shape.width;
}

Tensor Network::Input(Shape shape) { return AddTensor(shape, batch_, true); }
Tensor Network::Labels() { return AddTensor({}, batch_, true); }

Tensor Network::Conv(Tensor in, int64_t channels, Window window) {
  const Shape shape = ShapeOf(in);
  return AddLayer({in}, {channels, Extent(shape.height, window), Extent(shape.width, window)}, kWorkspace);
}

Tensor Network::Pool(Tensor in, Window window) {
  const Shape shape = ShapeOf(in);
  return AddLayer({in}, {shape.channels, Extent(shape.height, window), Extent(shape.width, window)});
}

Tensor Network::Pointwise(Tensor in) { return AddLayer({in}, ShapeOf(in)); }
Tensor Network::FullyConnected(Tensor in, int64_t values) { return AddLayer({in}, {values, 1, 1}); }

Tensor Network::Concat(const std::vector<Tensor>& in) {
  Shape shape = ShapeOf(in.front());
  shape.channels = 0;
  for (Tensor tensor : in) shape.channels += ShapeOf(tensor).channels;
  return AddLayer(in, shape);
}

Tensor Network::Loss(Tensor in, Tensor labels) {
  const Tensor loss = AddLayer({in, labels}, {});
  tensors_.back().images = 1;
  return loss;
}

Instance Network::Inference() const {
  std::vector<size_t> readers(tensors_.size(), 0);
  for (const Layer& layer : layers_) {
    for (Tensor in : layer.in) ++readers[static_cast<size_t>(in)];
  }
  Clockwork clockwork;
  std::vector<size_t> blocks(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].given) blocks[i] = clockwork.Allocate(BytesOf(static_cast<Tensor>(i)));
  }
  for (const Layer& layer : layers_) {
    const auto out = static_cast<size_t>(layer.out);
    blocks[out] = clockwork.Allocate(BytesOf(layer.out));
    clockwork.Use(layer.workspace);
    for (Tensor in : layer.in) {
      const auto i = static_cast<size_t>(in);
      if (--readers[i] == 0 && !tensors_[i].given) clockwork.Release(blocks[i]);
    }
    if (readers[out] == 0) clockwork.Release(blocks[out]);
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].given) clockwork.Release(blocks[i]);
  }
  return clockwork.Take();
}

Instance Network::Training() const {
  Clockwork clockwork;
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> blocks(tensors_.size()), gradients(tensors_.size(), kNone);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].given) blocks[i] = clockwork.Allocate(BytesOf(static_cast<Tensor>(i)));
  }
  for (const Layer& layer : layers_) {
    blocks[static_cast<size_t>(layer.out)] = clockwork.Allocate(BytesOf(layer.out));
    clockwork.Use(layer.workspace);
  }
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    const auto out = static_cast<size_t>(layer->out);
    if (gradients[out] == kNone) gradients[out] = clockwork.Allocate(BytesOf(layer->out));
    clockwork.Use(layer->workspace);  // gradient of the weights
    for (Tensor in : layer->in) {
      const auto i = static_cast<size_t>(in);
      if (tensors_[i].given || gradients[i] != kNone) continue;
      gradients[i] = clockwork.Allocate(BytesOf(in));
      clockwork.Use(layer->workspace);  // gradient of the input
    }
    clockwork.Release(blocks[out]);
    clockwork.Release(gradients[out]);
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].given) clockwork.Release(blocks[i]);
  }
  return clockwork.Take();
}

}  // namespace hotpack::bench
