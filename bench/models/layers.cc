#include "bench/models/layers.h"

#include <numeric>
#include <utility>

namespace hotpack::bench {
namespace {

constexpr Bytes kElement = 4;

int64_t Extent(int64_t in, int64_t size, int64_t pad, const Window& window) {
  const int64_t room = in + 2 * pad - size;
  return (window.cover_all ? room + window.stride - 1 : room) / window.stride + 1;
}

Shape Windowed(const Shape& in, int64_t channels, const Window& window) {
  const bool square = window.width == 0;
  return {channels, Extent(in.height, window.size, window.pad, window),
          Extent(in.width, square ? window.size : window.width, square ? window.pad : window.width_pad, window)};
}

}  // namespace

Tensor Network::AddTensor(Shape shape, int64_t images, bool given) {
  tensors_.push_back({shape, images, given});
  return static_cast<Tensor>(tensors_.size()) - 1;
}

Tensor Network::AddLayer(Layer layer, Shape out) {
  layer.out = AddTensor(out, batch_, false);
  layers_.push_back(std::move(layer));
  return layers_.back().out;
}

int64_t Network::ElementsOf(Tensor tensor) const {
  const TensorInfo& info = tensors_[static_cast<size_t>(tensor)];
  return info.images * info.shape.channels * info.shape.height * info.shape.width;
}

Bytes Network::BytesOf(Tensor tensor) const { return kElement * ElementsOf(tensor); }

Tensor Network::Input(Shape shape) { return AddTensor(shape, batch_, true); }
Tensor Network::Labels() { return AddTensor({}, batch_, true); }

Tensor Network::Conv(Tensor in, int64_t channels, Window window, bool bias) {
  const Shape shape = ShapeOf(in);
  const int64_t area = window.size * (window.width == 0 ? window.size : window.width);
  Layer layer{.in = {in}, .workspace = kWorkspace, .weights = {channels * shape.channels * area}};
  if (bias) layer.weights.push_back(channels);
  return AddLayer(std::move(layer), Windowed(shape, channels, window));
}

Tensor Network::Pool(Tensor in, Window window) {
  const Shape shape = ShapeOf(in);
  return AddLayer({.in = {in}}, Windowed(shape, shape.channels, window));
}

Tensor Network::Pointwise(Tensor in) { return AddLayer({.in = {in}}, ShapeOf(in)); }
Tensor Network::Normalise(Tensor in) { return AddLayer({.in = {in}, .kept = {ElementsOf(in)}}, ShapeOf(in)); }

Tensor Network::BatchNorm(Tensor in) {
  const int64_t channels = ShapeOf(in).channels;
  const std::vector<int64_t> two = {channels, channels};
  return AddLayer({.in = {in}, .weights = two, .averages = two, .kept = two}, ShapeOf(in));
}

Tensor Network::Dropout(Tensor in) {
  return AddLayer({.in = {in}, .kept = {ElementsOf(in)}, .dropout = true}, ShapeOf(in));
}

Tensor Network::FullyConnected(Tensor in, int64_t values) {
  const Shape shape = ShapeOf(in);
  return AddLayer({.in = {in}, .weights = {shape.channels * shape.height * shape.width * values, values}},
                  {values, 1, 1});
}

Tensor Network::Concat(const std::vector<Tensor>& in) {
  Shape shape = ShapeOf(in.front());
  shape.channels = 0;
  for (Tensor tensor : in) shape.channels += ShapeOf(tensor).channels;
  return AddLayer({.in = in}, shape);
}

Tensor Network::Add(Tensor a, Tensor b) { return AddLayer({.in = {a, b}}, ShapeOf(a)); }

Tensor Network::Loss(Tensor in, Tensor labels) {
  const Tensor loss = AddLayer({.in = {in, labels}}, {});
  tensors_.back().images = 1;
  return loss;
}

void Network::HoldWeights(int64_t elements) { held_.push_back(elements); }

int64_t Network::WeightCount() const {
  int64_t count = std::accumulate(held_.begin(), held_.end(), int64_t{0});
  for (const Layer& layer : layers_) count = std::accumulate(layer.weights.begin(), layer.weights.end(), count);
  return count;
}

std::vector<size_t> Network::WithoutDropout() const {
  std::vector<size_t> same(tensors_.size());
  std::iota(same.begin(), same.end(), size_t{0});
  for (const Layer& layer : layers_) {
    if (layer.dropout) same[static_cast<size_t>(layer.out)] = same[static_cast<size_t>(layer.in[0])];
  }
  return same;
}

void Network::Infer(Tape* tape) const {
  const std::vector<size_t> same = WithoutDropout();
  std::vector<size_t> readers(tensors_.size(), 0);
  for (const Layer& layer : layers_) {
    for (Tensor in : layer.in) readers[same[static_cast<size_t>(in)]] += layer.dropout ? 0 : 1;
  }
  std::vector<uint64_t> blocks(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].given) blocks[i] = tape->Allocate(BytesOf(static_cast<Tensor>(i)));
  }
  for (const Layer& layer : layers_) {
    if (layer.dropout) continue;
    const auto out = static_cast<size_t>(layer.out);
    blocks[out] = tape->Allocate(BytesOf(layer.out));
    if (layer.workspace > 0) tape->Use(layer.workspace);
    for (Tensor in : layer.in) {
      const size_t i = same[static_cast<size_t>(in)];
      if (--readers[i] == 0 && !tensors_[i].given) tape->Release(blocks[i]);
    }
    if (readers[out] == 0) tape->Release(blocks[out]);
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].given) tape->Release(blocks[i]);
  }
}

Instance Network::Inference() const {
  Tape tape;
  Infer(&tape);
  return tape.ToInstance();
}

Instance Network::Training() const {
  const std::vector<size_t> same = WithoutDropout();
  Tape tape;
  constexpr uint64_t kNone = UINT64_MAX;
  std::vector<uint64_t> blocks(tensors_.size()), gradients(tensors_.size(), kNone);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].given) blocks[i] = tape.Allocate(BytesOf(static_cast<Tensor>(i)));
  }
  for (const Layer& layer : layers_) {
    if (layer.dropout) continue;
    blocks[static_cast<size_t>(layer.out)] = tape.Allocate(BytesOf(layer.out));
    if (layer.workspace > 0) tape.Use(layer.workspace);
  }
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    if (layer->dropout) continue;
    const auto out = static_cast<size_t>(layer->out);
    if (gradients[out] == kNone) gradients[out] = tape.Allocate(BytesOf(layer->out));
    if (layer->workspace > 0) tape.Use(layer->workspace);  // gradient of the weights
    for (Tensor in : layer->in) {
      const size_t i = same[static_cast<size_t>(in)];
      if (tensors_[i].given || gradients[i] != kNone) continue;
      gradients[i] = tape.Allocate(BytesOf(in));
      if (layer->workspace > 0) tape.Use(layer->workspace);  // gradient of the input
    }
    tape.Release(blocks[out]);
    tape.Release(gradients[out]);
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].given) tape.Release(blocks[i]);
  }
  return tape.ToInstance();
}

}  // namespace hotpack::bench
