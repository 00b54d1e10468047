#include "remat/networks/residual.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "remat/networks/builder.h"

namespace hotpack::remat {
namespace {

// Draws which blocks exist. The result is the same on every machine, because no distribution of the library is used.
std::vector<bool> DrawBlocks(const ResNetOptions& options) {
  int64_t blocks = 0;
  for (int64_t stage : options.stages) blocks += stage;
  std::vector<bool> there(static_cast<size_t>(blocks), true);
  std::mt19937_64 random(options.seed);
  for (int64_t l = 1; l <= blocks; ++l) {
    const double drawn = static_cast<double>(random() >> 11) * 0x1p-53;  // in [0, 1)
    const double survival = 1 - static_cast<double>(l) / static_cast<double>(blocks) * (1 - options.last_survival);
    there[static_cast<size_t>(l - 1)] = drawn < survival;
  }
  return there;
}

TensorId NormRelu(NetworkBuilder* net, TensorId x) { return net->Relu(net->BatchNorm(x)); }

TensorId Block(NetworkBuilder* net, TensorId x, int64_t width, int64_t stride, bool first, bool there) {
  if (!first && !there) return x;
  const TensorId active = NormRelu(net, x);
  const auto shortcut = [&] { return net->Convolution(active, 4 * width, Square(1, stride)); };
  if (!there) return shortcut();
  TensorId h = NormRelu(net, net->Convolution(active, width, Square(1)));
  h = NormRelu(net, net->Convolution(h, width, Square(3, stride)));
  h = net->Convolution(h, 4 * width, Square(1));
  return net->Sum(h, first ? shortcut() : x);
}

}  // namespace

absl::StatusOr<std::array<int64_t, 4>> ResNetStages(int64_t n) {
  switch (n) {
    case 50:
      return std::array<int64_t, 4>{3, 4, 6, 3};
    case 101:
      return std::array<int64_t, 4>{3, 4, 23, 3};
    case 152:
      return std::array<int64_t, 4>{3, 8, 36, 3};
    case 200:
      return std::array<int64_t, 4>{3, 24, 36, 3};
    default:
      break;
  }
  if (n < 17 || n % 3 != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        n, " convolutions: 50, 101, 152, 200, or 3 · blocks + 5 with at least 4 blocks (17, 20, ..., 1007)"));
  }
  const int64_t blocks = (n - 5) / 3;
  const int64_t ends = std::min<int64_t>(3, blocks / 4);
  const int64_t rest = blocks - 2 * ends;
  const int64_t second = (2 * rest + 4) / 5;
  return std::array<int64_t, 4>{ends, second, rest - second, ends};
}

absl::StatusOr<Network> ResNet(const ResNetOptions& options) {
  NetworkBuilder net(options.workspace);
  const std::vector<bool> there = DrawBlocks(options);
  const TensorId labels = net.Data("labels", {options.batch});
  TensorId x = net.Data("images", {options.batch, 3, options.image, options.image});
  x = net.MaxPool(NormRelu(&net, net.Convolution(x, 64, Square(7, 2))), Square(3, 2));
  size_t number = 0;
  for (size_t stage = 0; stage < options.stages.size(); ++stage) {
    for (int64_t block = 0; block < options.stages[stage]; ++block) {
      const bool first = block == 0;
      x = Block(&net, x, int64_t{64} << stage, stage > 0 && first ? 2 : 1, first, there[number++]);
    }
  }
  x = net.FullyConnected(net.Flatten(net.GlobalPool(NormRelu(&net, x))), options.classes);
  net.Result(net.Softmax(x), labels);
  return net.Finish();
}

std::vector<Generator> ResidualGenerators() {
  const auto make = [](const Parameters& of) -> absl::StatusOr<Network> {
    const absl::StatusOr<std::array<int64_t, 4>> stages = ResNetStages(of.at("depth"));
    if (!stages.ok()) return stages.status();
    ResNetOptions options = {*stages, of.at("batch"), of.at("image"), of.at("classes"), of.at("workspace") << 20};
    if (const auto survival = of.find("survival"); survival != of.end()) {
      options.last_survival = static_cast<double>(survival->second) / 100;
      options.seed = static_cast<uint64_t>(of.at("seed"));
    }
    return ResNet(options);
  };
  const std::vector<Key> keys = {
      {"depth", 50, 17, 100'001, "50, 101, 152, 200, or a number of convolutions, 3 · blocks + 5"},
      BatchKey(32),
      ImageKey(224),
      ClassesKey(1000),
      WorkspaceKey()};
  Generator resnet = {"resnet", "ResNet with pre-activation bottlenecks (He et al. 2016)", {"depth"}, keys};
  Generator drawn = {
      "stochastic_depth", "ResNet of which blocks are left out by a draw (Huang et al. 2016)", {"depth"}, keys};
  drawn.keys.push_back(
      {"survival", 50, 0, 100, "percent: how likely the last block is there; the first ones are likelier"});
  drawn.keys.push_back({"seed", 1, 0, INT64_MAX, "of the draw"});
  resnet.network = drawn.network = make;
  return {resnet, drawn};
}

}  // namespace hotpack::remat
