// ResNet-50 and Inception-ResNet.
#include "bench/models/networks.h"

namespace hotpack::bench {
namespace {

constexpr int64_t kClasses = 1000;
constexpr Window kOne = {.size = 1};
constexpr Window kThree = {.size = 3, .pad = 1};
constexpr Window kHalve = {.size = 3, .stride = 2};

Tensor ConvNorm(Network* net, Tensor in, int64_t channels, Window window) {
  return net->BatchNorm(net->Conv(in, channels, window, false));
}

Tensor ConvNormRelu(Network* net, Tensor in, int64_t channels, Window window) {
  return net->Pointwise(ConvNorm(net, in, channels, window));
}

void Classify(Network* net, Tensor in, Tensor labels) {
  net->Loss(net->Pointwise(net->FullyConnected(in, kClasses)), labels);
}

// He et al. 2015, Figure 5, right; the stride is in the first convolution (their §3.3).
Tensor Bottleneck(Network* net, Tensor in, int64_t width, int64_t stride, bool shortcut) {
  const Window first = {.size = 1, .stride = stride};
  Tensor h = ConvNormRelu(net, in, width, first);
  h = ConvNormRelu(net, h, width, kThree);
  h = ConvNorm(net, h, 4 * width, kOne);
  return net->Pointwise(net->Add(h, shortcut ? ConvNorm(net, in, 4 * width, first) : in));
}

// Szegedy et al. 2016, Figures 16, 17 and 19: h + scaled 1 × 1 convolution of the branches. The scaled result is a
// tensor of its own.
Tensor Residual(Network* net, Tensor in, const std::vector<Tensor>& branches, bool relu = true) {
  const Tensor up = net->Conv(net->Concat(branches), net->ShapeOf(in).channels, kOne);
  const Tensor sum = net->Add(in, net->Pointwise(up));
  return relu ? net->Pointwise(sum) : sum;
}

// The differences between the two versions (Szegedy et al. 2016, Figures 10 to 19; the second as in the published
// weights).
struct Version {
  bool branches_in_stem;
  int64_t a, b, c;            // blocks
  int64_t a_second, a_third;  // channels of block A's third branch
  int64_t reduction[3];       // of reduction A's third branch
  int64_t b_left, b_rows[3];  // of block B
  int64_t two, three, four;   // of reduction B's later branches
  int64_t c_rows[3];          // of block C
  int64_t last;               // of a convolution at the end; 0: none
};
constexpr Version kFirst = {false,           5, 10, 5, 32, 32, {192, 192, 256}, 128, {128, 128, 128}, 256, 256, 256,
                            {192, 192, 192}, 0};
constexpr Version kSecond = {
    true, 10, 20, 10, 48, 64, {256, 256, 384}, 192, {128, 160, 192}, 288, 288, 320, {192, 224, 256}, 1536};

Tensor BlockA(Network* net, Tensor in, const Version& version) {
  const Tensor two = ConvNormRelu(net, ConvNormRelu(net, in, 32, kOne), 32, kThree);
  const Tensor three = ConvNormRelu(net, ConvNormRelu(net, in, 32, kOne), version.a_second, kThree);
  return Residual(net, in, {ConvNormRelu(net, in, 32, kOne), two, ConvNormRelu(net, three, version.a_third, kThree)});
}

// A 1 × 1 convolution in parallel to another one, which 1 × n and n × 1 follow.
Tensor BlockOfRows(Network* net, Tensor in, int64_t n, int64_t left, const int64_t (&rows)[3], bool relu) {
  const int64_t pad = n / 2;
  Tensor h = ConvNormRelu(net, in, rows[0], kOne);
  h = ConvNormRelu(net, h, rows[1], {.size = 1, .width = n, .width_pad = pad});
  h = ConvNormRelu(net, h, rows[2], {.size = n, .pad = pad, .width = 1});
  return Residual(net, in, {ConvNormRelu(net, in, left, kOne), h}, relu);
}

// 35 × 35 × 256, or 320.
Tensor Stem(Network* net, Tensor in, const Version& version) {
  Tensor h = ConvNormRelu(net, in, 32, kHalve);
  h = ConvNormRelu(net, h, 32, {.size = 3});
  h = net->Pool(ConvNormRelu(net, h, 64, kThree), kHalve);
  h = ConvNormRelu(net, h, 80, kOne);
  h = ConvNormRelu(net, h, 192, {.size = 3});
  if (!version.branches_in_stem) return ConvNormRelu(net, h, 256, kHalve);
  h = net->Pool(h, kHalve);
  const Tensor one = ConvNormRelu(net, h, 96, kOne);
  const Tensor five = ConvNormRelu(net, ConvNormRelu(net, h, 48, kOne), 64, {.size = 5, .pad = 2});
  const Tensor three = ConvNormRelu(net, ConvNormRelu(net, h, 64, kOne), 96, kThree);
  const Tensor pool = ConvNormRelu(net, net->Pool(h, kThree), 64, kOne);
  return net->Concat({one, five, ConvNormRelu(net, three, 96, kThree), pool});
}

// 17 × 17 × 896, or 1088.
Tensor ReductionA(Network* net, Tensor in, const Version& version) {
  const auto& [first, second, third] = version.reduction;
  const Tensor three = ConvNormRelu(net, ConvNormRelu(net, in, first, kOne), second, kThree);
  return net->Concat(
      {ConvNormRelu(net, in, 384, kHalve), ConvNormRelu(net, three, third, kHalve), net->Pool(in, kHalve)});
}

// 8 × 8 × 1792, or 2080.
Tensor ReductionB(Network* net, Tensor in, const Version& version) {
  const Tensor one = ConvNormRelu(net, ConvNormRelu(net, in, 256, kOne), 384, kHalve);
  const Tensor two = ConvNormRelu(net, ConvNormRelu(net, in, 256, kOne), version.two, kHalve);
  const Tensor three = ConvNormRelu(net, ConvNormRelu(net, in, 256, kOne), version.three, kThree);
  return net->Concat({one, two, ConvNormRelu(net, three, version.four, kHalve), net->Pool(in, kHalve)});
}

Network InceptionResNet(int64_t batch, const Version& version) {
  Network net(batch);
  const Tensor image = net.Input({3, 299, 299});
  const Tensor labels = net.Labels();
  Tensor h = Stem(&net, image, version);
  for (int64_t i = 0; i < version.a; ++i) h = BlockA(&net, h, version);
  h = ReductionA(&net, h, version);
  for (int64_t i = 0; i < version.b; ++i) h = BlockOfRows(&net, h, 7, version.b_left, version.b_rows, true);
  h = ReductionB(&net, h, version);
  for (int64_t i = 0; i < version.c; ++i) h = BlockOfRows(&net, h, 3, 192, version.c_rows, i + 1 < version.c);
  if (version.last > 0) h = ConvNormRelu(&net, h, version.last, kOne);
  Classify(&net, net.Dropout(net.Pool(h, {.size = 8})), labels);
  return net;
}

}  // namespace

Network ResNet50(int64_t batch) {
  Network net(batch);
  const Tensor image = net.Input({3, 224, 224});
  const Tensor labels = net.Labels();
  Tensor h = net.Conv(image, 64, {.size = 7, .stride = 2, .pad = 3});
  h = net.Pool(net.Pointwise(net.BatchNorm(h)), {.size = 3, .stride = 2, .cover_all = true});
  constexpr int64_t kBlocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    for (int64_t block = 0; block < kBlocks[stage]; ++block) {
      h = Bottleneck(&net, h, int64_t{64} << stage, stage > 0 && block == 0 ? 2 : 1, block == 0);
    }
  }
  Classify(&net, net.Pool(h, {.size = 7}), labels);
  return net;
}

Network InceptionResNet1(int64_t batch) { return InceptionResNet(batch, kFirst); }
Network InceptionResNet2(int64_t batch) { return InceptionResNet(batch, kSecond); }

}  // namespace hotpack::bench
