#include "remat/networks/convolutional.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "remat/networks/builder.h"

namespace hotpack::remat {
namespace {

TensorId ConvRelu(NetworkBuilder* net, TensorId x, int64_t channels) {
  return net->Relu(net->Convolution(x, channels, Square(3), true));
}

// Returns the number of convolutions in front of each pooling.
absl::StatusOr<std::array<int64_t, 5>> VggStages(int64_t layers) {
  switch (layers) {
    case 11:
      return std::array<int64_t, 5>{1, 1, 2, 2, 2};
    case 13:
      return std::array<int64_t, 5>{2, 2, 2, 2, 2};
    case 16:
      return std::array<int64_t, 5>{2, 2, 3, 3, 3};
    case 19:
      return std::array<int64_t, 5>{2, 2, 4, 4, 4};
    default:
      return absl::InvalidArgumentError(absl::StrCat(layers, " layers: there are 11, 13, 16 and 19"));
  }
}

}  // namespace

absl::StatusOr<Network> Vgg(const VggOptions& options) {
  constexpr std::array<int64_t, 5> kWidths = {64, 128, 256, 512, 512};
  const absl::StatusOr<std::array<int64_t, 5>> stages = VggStages(options.layers);
  if (!stages.ok()) return stages.status();
  NetworkBuilder net(options.workspace);
  const TensorId labels = net.Data("labels", {options.batch});
  TensorId x = net.Data("images", {options.batch, 3, options.image, options.image});
  for (size_t stage = 0; stage < kWidths.size(); ++stage) {
    for (int64_t i = 0; i < (*stages)[stage]; ++i) x = ConvRelu(&net, x, kWidths[stage]);
    x = net.MaxPool(x, Square(2, 2));
  }
  x = net.Flatten(x);
  for (int i = 0; i < 2; ++i) x = net.Dropout(net.Relu(net.FullyConnected(x, 4096)));
  net.Result(net.Softmax(net.FullyConnected(x, options.classes)), labels);
  return net.Finish();
}

absl::StatusOr<Network> UNet(const UNetOptions& options) {
  if (options.image % (int64_t{1} << options.depth) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("an image of ", options.image, " is no multiple of ",
                                                   int64_t{1} << options.depth, ", 2 to the depth"));
  }
  NetworkBuilder net(options.workspace);
  const TensorId labels = net.Data("labels", {options.batch, options.image, options.image});
  TensorId x = net.Data("images", {options.batch, 1, options.image, options.image});
  std::vector<TensorId> across;
  for (int64_t level = 0; level < options.depth; ++level) {
    const int64_t channels = options.width << level;
    across.push_back(ConvRelu(&net, ConvRelu(&net, x, channels), channels));
    x = net.MaxPool(across.back(), Square(2, 2));
  }
  const int64_t bottom = options.width << options.depth;
  x = net.Dropout(ConvRelu(&net, ConvRelu(&net, x, bottom), bottom));
  for (int64_t level = options.depth; level-- > 0;) {
    const int64_t channels = options.width << level;
    x = net.Concat({across[static_cast<size_t>(level)], net.Deconvolution(x, channels, 2, true)});
    x = ConvRelu(&net, ConvRelu(&net, x, channels), channels);
  }
  net.Result(net.Softmax(net.Convolution(x, options.classes, Square(1), true)), labels);
  return net.Finish();
}

std::vector<Generator> ConvolutionalGenerators() {
  Generator vgg = {
      "vgg",
      "VGG (Simonyan, Zisserman 2014)",
      {"layers"},
      {{"layers", 16, 11, 19, "11, 13, 16 or 19"}, BatchKey(64), ImageKey(224), ClassesKey(1000), WorkspaceKey()}};
  vgg.network = [](const Parameters& of) {
    return Vgg({of.at("layers"), of.at("batch"), of.at("image"), of.at("classes"), of.at("workspace") << 20});
  };
  Generator unet = {"unet",
                    "U-Net (Ronneberger, Fischer, Brox 2015), with padding",
                    {},
                    {BatchKey(8),
                     ImageKey(512),
                     {"depth", 4, 1, 10, "poolings"},
                     {"width", 64, 1, 4096, "channels at the top"},
                     ClassesKey(2),
                     WorkspaceKey()}};
  unet.network = [](const Parameters& of) {
    return UNet(
        {of.at("batch"), of.at("image"), of.at("depth"), of.at("width"), of.at("classes"), of.at("workspace") << 20});
  };
  return {vgg, unet};
}

}  // namespace hotpack::remat
