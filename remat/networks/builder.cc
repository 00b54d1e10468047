#include "remat/networks/builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hotpack::remat {
namespace {

constexpr double kLargest = 4611686018427387904.0;  // 2^62

double Product(const std::vector<int64_t>& shape) {
  double product = 1;
  for (int64_t size : shape) product *= static_cast<double>(size);
  return product;
}

}  // namespace

void NetworkBuilder::Fail(std::string what) {
  if (fault_.ok()) fault_ = absl::InvalidArgumentError(std::move(what));
}

TensorId NetworkBuilder::NewTensor(std::string name, std::vector<int64_t> shape, TensorRole role, Bytes element) {
  const double bytes = Product(shape) * static_cast<double>(element);
  const bool positive = std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size > 0; });
  if (!positive) Fail(absl::StrCat(name, ": nothing is left of it (a size below 1)"));
  if (bytes >= kLargest) Fail(absl::StrCat(name, ": more than 2^62 bytes"));
  if (!fault_.ok() && !network_.tensors.empty()) return 0;
  network_.tensors.push_back({std::move(name), std::move(shape), fault_.ok() ? static_cast<Bytes>(bytes) : 0, role});
  return static_cast<TensorId>(network_.tensors.size()) - 1;
}

TensorId NetworkBuilder::Data(std::string name, std::vector<int64_t> shape, Bytes element) {
  return NewTensor(std::move(name), std::move(shape), TensorRole::kData, element);
}

TensorId NetworkBuilder::Weight(std::vector<int64_t> shape, std::string name) {
  if (name.empty()) name = absl::StrCat("weight", network_.tensors.size());
  return NewTensor(std::move(name), std::move(shape), TensorRole::kWeight);
}

int64_t NetworkBuilder::ElementsOf(TensorId tensor) const {
  return static_cast<int64_t>(std::min(Product(ShapeOf(tensor)), kLargest));
}

std::string NetworkBuilder::NextName(const std::string& kind) const {
  const auto count =
      std::find_if(counts_.begin(), counts_.end(), [&kind](const auto& each) { return each.first == kind; });
  return absl::StrCat(kind, count == counts_.end() ? 1 : count->second + 1);
}

TensorId NetworkBuilder::Add(Layer layer) {
  if (network_.layers.size() >= kMaxLayers) Fail(absl::StrCat("more than ", kMaxLayers, " layers"));
  if (!fault_.ok()) return 0;
  if (layer.name.empty()) layer.name = NextName(layer.kind);
  auto count =
      std::find_if(counts_.begin(), counts_.end(), [&layer](const auto& each) { return each.first == layer.kind; });
  if (count == counts_.end()) count = counts_.insert(count, {layer.kind, 0});
  ++count->second;
  network_.layers.push_back(std::move(layer));
  return network_.layers.back().outputs.empty() ? -1 : network_.layers.back().outputs.front();
}

Layer NetworkBuilder::Start(const std::string& kind) const {
  Layer layer;
  layer.kind = kind;
  layer.name = NextName(kind);
  return layer;
}

TensorId NetworkBuilder::Output(Layer* layer, std::vector<int64_t> shape) {
  layer->outputs.push_back(NewTensor(layer->name, std::move(shape), TensorRole::kFeatureMap));
  return layer->outputs.back();
}

std::vector<int64_t> NetworkBuilder::Places(TensorId x, int64_t channels, Window window) {
  const std::vector<int64_t>& shape = ShapeOf(x);
  if (shape.size() != 4) {
    Fail(absl::StrCat(network_.tensors[static_cast<size_t>(x)].name, ": not an image"));
    return {1, 1, 1, 1};
  }
  const auto places = [&window](int64_t size, int64_t seen) {
    return window.pad          ? (size + window.stride - 1) / window.stride
           : (size - seen) < 0 ? 0
                               : (size - seen) / window.stride + 1;
  };
  return {shape[0], channels, places(shape[2], window.height), places(shape[3], window.width)};
}

TensorId NetworkBuilder::Convolution(TensorId x, int64_t channels, Window window, bool bias) {
  const std::vector<int64_t> shape = Places(x, channels, window);
  if (!fault_.ok()) return 0;
  const int64_t inputs = ShapeOf(x)[1];
  Layer layer = Start("convolution");
  layer.inputs = {x};
  layer.weights = {Weight({channels, inputs, window.height, window.width}, absl::StrCat(layer.name, ".weight"))};
  layer.gradient_reads = {x, layer.weights[0]};
  if (bias) layer.weights.push_back(Weight({channels}, absl::StrCat(layer.name, ".bias")));
  const double unfolded = static_cast<double>(inputs * window.height * window.width);
  layer.flops = layer.gradient_flops = 2 * unfolded * Product(shape);
  layer.heavy = true;
  if (window.height * window.width > 1) {
    const double wanted = unfolded * Product(shape) / static_cast<double>(channels) * static_cast<double>(kElement);
    layer.workspace = layer.gradient_workspace =
        static_cast<Bytes>(std::min(wanted, static_cast<double>(convolution_workspace_)));
  }
  Output(&layer, shape);
  return Add(std::move(layer));
}

TensorId NetworkBuilder::Deconvolution(TensorId x, int64_t channels, int64_t factor, bool bias) {
  const std::vector<int64_t> from = ShapeOf(x);
  if (from.size() != 4) Fail("a deconvolution of what is not an image");
  if (!fault_.ok()) return 0;
  Layer layer = Start("deconvolution");
  layer.inputs = {x};
  layer.weights = {Weight({from[1], channels, factor, factor}, absl::StrCat(layer.name, ".weight"))};
  layer.gradient_reads = {x, layer.weights[0]};
  if (bias) layer.weights.push_back(Weight({channels}, absl::StrCat(layer.name, ".bias")));
  layer.flops = layer.gradient_flops = 2 * Product(from) * static_cast<double>(channels * factor * factor);
  layer.heavy = true;
  Output(&layer, {from[0], channels, from[2] * factor, from[3] * factor});
  return Add(std::move(layer));
}

TensorId NetworkBuilder::Pool(const std::string& kind, TensorId x, Window window, bool reads_both) {
  const std::vector<int64_t> shape = Places(x, ShapeOf(x).size() == 4 ? ShapeOf(x)[1] : 1, window);
  if (!fault_.ok()) return 0;
  Layer layer = Start(kind);
  layer.inputs = {x};
  const TensorId y = Output(&layer, shape);
  if (reads_both) layer.gradient_reads = {x, y};
  layer.flops = layer.gradient_flops = Product(shape) * static_cast<double>(window.height * window.width);
  return Add(std::move(layer));
}

TensorId NetworkBuilder::MaxPool(TensorId x, Window window) { return Pool("max_pool", x, window, true); }
TensorId NetworkBuilder::AveragePool(TensorId x, Window window) { return Pool("average_pool", x, window, false); }

TensorId NetworkBuilder::GlobalPool(TensorId x) {
  const std::vector<int64_t> shape = ShapeOf(x);
  if (shape.size() != 4) Fail("a global pooling of what is not an image");
  if (!fault_.ok()) return 0;
  Layer layer = Start("global_pool");
  layer.inputs = {x};
  Output(&layer, {shape[0], shape[1], 1, 1});
  layer.flops = layer.gradient_flops = Product(shape);
  return Add(std::move(layer));
}

// Reads x twice, for the statistics and to apply them. The gradient reads x and the gradient twice in the same way.
TensorId NetworkBuilder::Normalise(const std::string& kind, TensorId x, int64_t channels, int64_t groups) {
  if (!fault_.ok()) return 0;
  Layer layer = Start(kind);
  const std::vector<int64_t> shape = ShapeOf(x);
  layer.inputs = {x};
  const TensorId scale = Weight({2, channels}, absl::StrCat(layer.name, ".scale"));  // scale and shift
  layer.weights = {scale};
  const TensorId y = Output(&layer, shape);
  const TensorId statistics = NewTensor(absl::StrCat(layer.name, ".statistics"), {2, groups}, TensorRole::kStatistics);
  layer.outputs.push_back(statistics);
  layer.gradient_reads = {x, scale, statistics};
  layer.gradient_in_place = {{y, x}};
  layer.flops = 8 * Product(shape);
  layer.gradient_flops = 6 * Product(shape);
  const double bytes = Product(shape) * static_cast<double>(kElement);
  layer.moved = 3 * bytes;
  layer.gradient_moved = 5 * bytes;
  return Add(std::move(layer));
}

TensorId NetworkBuilder::BatchNorm(TensorId x) {
  const int64_t channels = ShapeOf(x).size() < 2 ? 1 : ShapeOf(x)[1];
  return Normalise("batch_norm", x, channels, channels);
}

TensorId NetworkBuilder::LayerNorm(TensorId x) {
  const int64_t columns = ShapeOf(x).back();
  return Normalise("layer_norm", x, columns, ElementsOf(x) / std::max<int64_t>(columns, 1));
}

TensorId NetworkBuilder::FromOutput(const std::string& kind, TensorId x, double flops_an_element) {
  if (!fault_.ok()) return 0;
  Layer layer = Start(kind);
  layer.inputs = {x};
  const TensorId y = Output(&layer, ShapeOf(x));
  layer.gradient_reads = {y};
  layer.in_place = {{x, y}};
  layer.gradient_in_place = {{y, x}};
  layer.flops = layer.gradient_flops = flops_an_element * Product(ShapeOf(x));
  return Add(std::move(layer));
}

TensorId NetworkBuilder::Gelu(TensorId x) {
  if (!fault_.ok()) return 0;
  Layer layer = Start("gelu");
  layer.inputs = layer.gradient_reads = {x};
  const TensorId y = Output(&layer, ShapeOf(x));
  layer.gradient_in_place = {{y, x}};
  layer.flops = layer.gradient_flops = 12 * Product(ShapeOf(x));
  return Add(std::move(layer));
}

TensorId NetworkBuilder::Dropout(TensorId x) {
  if (!fault_.ok()) return 0;
  Layer layer = Start("dropout");
  layer.inputs = {x};
  const TensorId y = Output(&layer, ShapeOf(x));
  const TensorId mask = NewTensor(absl::StrCat(layer.name, ".mask"), ShapeOf(x), TensorRole::kMask, 1);
  layer.outputs.push_back(mask);
  layer.gradient_reads = {mask};
  layer.in_place = {{x, y}};
  layer.gradient_in_place = {{y, x}};
  layer.flops = 10 * Product(ShapeOf(x));
  layer.gradient_flops = Product(ShapeOf(x));
  layer.random = true;
  return Add(std::move(layer));
}

// The sum may take over the memory of either operand. So may one of the two gradients, which are copies of the sum's.
TensorId NetworkBuilder::Sum(TensorId a, TensorId b) {
  if (ShapeOf(a) != ShapeOf(b)) Fail("a sum of tensors of different shapes");
  if (a == b) Fail("a sum of a tensor with itself");
  if (!fault_.ok()) return 0;
  Layer layer = Start("sum");
  layer.inputs = {a, b};
  const TensorId y = Output(&layer, ShapeOf(a));
  layer.in_place = {{a, y}, {b, y}};
  layer.gradient_in_place = {{y, a}, {y, b}};
  layer.flops = layer.gradient_flops = Product(ShapeOf(a));
  return Add(std::move(layer));
}

TensorId NetworkBuilder::Multiply(TensorId a, TensorId b) {
  if (ShapeOf(a) != ShapeOf(b)) Fail("a product of tensors of different shapes");
  if (a == b) Fail("a product of a tensor with itself");
  if (!fault_.ok()) return 0;
  Layer layer = Start("multiply");
  layer.inputs = layer.gradient_reads = {a, b};
  const TensorId y = Output(&layer, ShapeOf(a));
  layer.in_place = {{a, y}, {b, y}};
  layer.gradient_in_place = {{y, a}, {y, b}};
  layer.flops = layer.gradient_flops = Product(ShapeOf(a));
  return Add(std::move(layer));
}

TensorId NetworkBuilder::Concat(const std::vector<TensorId>& parts, size_t dimension) {
  if (!fault_.ok()) return 0;
  std::vector<int64_t> shape = ShapeOf(parts.front());
  int64_t sum = 0;
  for (TensorId part : parts) {
    std::vector<int64_t> like = ShapeOf(part);
    if (dimension >= like.size() || like.size() != shape.size()) {
      Fail("a concatenation of tensors of different dimensions");
      return 0;
    }
    sum += like[dimension];
    like[dimension] = shape[dimension];
    if (like != shape) Fail("a concatenation of tensors of different shapes");
  }
  shape[dimension] = sum;
  Layer layer = Start("concat");
  layer.inputs = parts;
  Output(&layer, shape);
  return Add(std::move(layer));
}

TensorId NetworkBuilder::Reshape(TensorId x, std::vector<int64_t> shape) {
  if (Product(shape) != Product(ShapeOf(x))) Fail("a view of another size");
  if (fault_.ok()) network_.tensors[static_cast<size_t>(x)].shape = std::move(shape);
  return x;
}

TensorId NetworkBuilder::Flatten(TensorId x) {
  const int64_t rows = ShapeOf(x).empty() ? 1 : std::max<int64_t>(ShapeOf(x)[0], 1);
  return Reshape(x, {rows, ElementsOf(x) / rows});
}

TensorId NetworkBuilder::FullyConnected(TensorId x, int64_t outputs, bool bias, TensorId weight) {
  if (!fault_.ok()) return 0;
  std::vector<int64_t> shape = ShapeOf(x);
  const int64_t inputs = shape.back();
  Layer layer = Start("fully_connected");
  layer.inputs = {x};
  layer.weights = {weight >= 0 ? weight : Weight({outputs, inputs}, absl::StrCat(layer.name, ".weight"))};
  layer.gradient_reads = {x, layer.weights[0]};
  if (bias) layer.weights.push_back(Weight({outputs}, absl::StrCat(layer.name, ".bias")));
  layer.flops = layer.gradient_flops = 2 * Product(shape) * static_cast<double>(outputs);
  layer.heavy = true;
  shape.back() = outputs;
  Output(&layer, shape);
  return Add(std::move(layer));
}

TensorId NetworkBuilder::BatchProduct(TensorId a, TensorId b, bool transposed) {
  std::vector<int64_t> shape = ShapeOf(a);
  const std::vector<int64_t>& other = ShapeOf(b);
  const size_t last = shape.size() - 1;
  const bool fits = shape.size() >= 2 && other.size() == shape.size() &&
                    std::equal(shape.begin(), shape.end() - 2, other.begin()) &&
                    shape[last] == other[transposed ? last : last - 1];
  if (!fits || a == b) Fail("a product of matrices that do not fit");
  if (!fault_.ok()) return 0;
  Layer layer = Start("batch_product");
  layer.inputs = layer.gradient_reads = {a, b};
  const int64_t columns = other[transposed ? last - 1 : last];
  layer.flops = layer.gradient_flops = 2 * Product(shape) * static_cast<double>(columns);
  layer.heavy = true;
  shape[last] = columns;
  Output(&layer, shape);
  return Add(std::move(layer));
}

// The table's gradient covers all rows, as with dense gradients.
TensorId NetworkBuilder::Embedding(TensorId x, int64_t rows, int64_t columns) {
  if (!fault_.ok()) return 0;
  std::vector<int64_t> shape = ShapeOf(x);
  shape.push_back(columns);
  Layer layer = Start("embedding");
  layer.inputs = layer.gradient_reads = {x};
  layer.weights = {Weight({rows, columns}, absl::StrCat(layer.name, ".weight"))};
  Output(&layer, shape);
  layer.moved = 2 * Product(shape) * static_cast<double>(kElement);
  layer.gradient_moved = layer.moved + static_cast<double>(rows * columns * kElement);
  return Add(std::move(layer));
}

absl::StatusOr<Network> NetworkBuilder::Finish() {
  if (!fault_.ok()) return fault_;
  return std::move(network_);
}

}  // namespace hotpack::remat
