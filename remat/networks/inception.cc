#include "remat/networks/inception.h"

#include "remat/networks/builder.h"

namespace hotpack::remat {
namespace {

constexpr Window kOne = Square(1);
constexpr Window kThree = Square(3);
constexpr Window kHalf = Square(3, 2, false);  // halves height and width

struct Step {
  int64_t channels;
  Window window;
};

TensorId Conv(NetworkBuilder* net, TensorId x, Step step) {
  return net->Relu(net->BatchNorm(net->Convolution(x, step.channels, step.window)));
}

TensorId Branch(NetworkBuilder* net, TensorId x, const std::vector<Step>& steps) {
  for (const Step& step : steps) x = Conv(net, x, step);
  return x;
}

TensorId PoolBranch(NetworkBuilder* net, TensorId x, int64_t channels) {
  return Conv(net, net->AveragePool(x, kThree), {channels, kOne});
}

// Figure 5: 35 × 35 places.
TensorId ModuleA(NetworkBuilder* net, TensorId x, int64_t pooled) {
  return net->Concat({Branch(net, x, {{64, kOne}}), Branch(net, x, {{48, kOne}, {64, Square(5)}}),
                      Branch(net, x, {{64, kOne}, {96, kThree}, {96, kThree}}), PoolBranch(net, x, pooled)});
}

TensorId ReductionA(NetworkBuilder* net, TensorId x) {
  return net->Concat({Branch(net, x, {{384, kHalf}}), Branch(net, x, {{64, kOne}, {96, kThree}, {96, kHalf}}),
                      net->MaxPool(x, kHalf)});
}

// Figure 6, n = 7: 17 × 17 places.
TensorId ModuleB(NetworkBuilder* net, TensorId x, int64_t c) {
  constexpr Window kRow = {1, 7}, kColumn = {7, 1};
  return net->Concat({Branch(net, x, {{192, kOne}}), Branch(net, x, {{c, kOne}, {c, kRow}, {192, kColumn}}),
                      Branch(net, x, {{c, kOne}, {c, kColumn}, {c, kRow}, {c, kColumn}, {192, kRow}}),
                      PoolBranch(net, x, 192)});
}

TensorId ReductionB(NetworkBuilder* net, TensorId x) {
  return net->Concat({Branch(net, x, {{192, kOne}, {320, kHalf}}),
                      Branch(net, x, {{192, kOne}, {192, {1, 7}}, {192, {7, 1}}, {192, kHalf}}),
                      net->MaxPool(x, kHalf)});
}

// Figure 7: 8 × 8 places; a row and a column in parallel.
TensorId ModuleC(NetworkBuilder* net, TensorId x) {
  const auto fork = [net](TensorId h) {
    return net->Concat({Conv(net, h, {384, {1, 3}}), Conv(net, h, {384, {3, 1}})});
  };
  return net->Concat({Branch(net, x, {{320, kOne}}), fork(Branch(net, x, {{384, kOne}})),
                      fork(Branch(net, x, {{448, kOne}, {384, kThree}})), PoolBranch(net, x, 192)});
}

}  // namespace

absl::StatusOr<Network> Inception(const InceptionOptions& options) {
  NetworkBuilder net(options.workspace);
  const TensorId labels = net.Data("labels", {options.batch});
  TensorId x = net.Data("images", {options.batch, 3, options.image, options.image});
  x = Branch(&net, x, {{32, kHalf}, {32, Square(3, 1, false)}, {64, kThree}});
  x = Branch(&net, net.MaxPool(x, kHalf), {{80, kOne}, {192, Square(3, 1, false)}});
  x = net.MaxPool(x, kHalf);
  for (int64_t pooled : {32, 64, 64}) x = ModuleA(&net, x, pooled);
  x = ReductionA(&net, x);
  for (int64_t c : {128, 160, 160, 192}) x = ModuleB(&net, x, c);
  x = ReductionB(&net, x);
  for (int i = 0; i < 2; ++i) x = ModuleC(&net, x);
  x = net.FullyConnected(net.Dropout(net.Flatten(net.GlobalPool(x))), options.classes);
  net.Result(net.Softmax(x), labels);
  return net.Finish();
}

std::vector<Generator> InceptionGenerators() {
  Generator inception = {"inception",
                         "Inception v3 (Szegedy et al. 2015)",
                         {},
                         {BatchKey(32), ImageKey(299, 75), ClassesKey(1000), WorkspaceKey()}};
  inception.network = [](const Parameters& of) {
    return Inception({of.at("batch"), of.at("image"), of.at("classes"), of.at("workspace") << 20});
  };
  return {inception};
}

}  // namespace hotpack::remat
