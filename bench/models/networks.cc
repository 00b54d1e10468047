#include "bench/models/networks.h"

#include <iterator>

namespace hotpack::bench {
namespace {

constexpr int64_t kClasses = 1000;
constexpr Window kPool = {.size = 3, .stride = 2, .cover_all = true};
constexpr Window kOne = {.size = 1};
constexpr Window kThree = {.size = 3, .pad = 1};
constexpr Window kFive = {.size = 5, .pad = 2};

Tensor ConvRelu(Network* net, Tensor in, int64_t channels, Window window) {
  return net->Pointwise(net->Conv(in, channels, window));
}

// One row of Szegedy et al., Table 1: channels of each branch.
struct Inception {
  int64_t one;                  // "#1×1"
  int64_t reduce_three, three;  // "#3×3 reduce", "#3×3"
  int64_t reduce_five, five;    // "#5×5 reduce", "#5×5"
  int64_t pool;                 // "pool proj"
  bool pool_before = false;     // a 3×3 pooling with stride 2 precedes it
};

constexpr Inception kInceptions[] = {
    {64, 96, 128, 16, 32, 32},            // 3a
    {128, 128, 192, 32, 96, 64},          // 3b
    {192, 96, 208, 16, 48, 64, true},     // 4a
    {160, 112, 224, 24, 64, 64},          // 4b
    {128, 128, 256, 24, 64, 64},          // 4c
    {112, 144, 288, 32, 64, 64},          // 4d
    {256, 160, 320, 32, 128, 128},        // 4e
    {256, 160, 320, 32, 128, 128, true},  // 5a
    {384, 192, 384, 48, 128, 128},        // 5b
};
constexpr size_t k4a = 2, k4d = 5;

// An auxiliary classifier (Szegedy et al., §5), with its own loss.
void AddAuxiliary(Network* net, Tensor in, Tensor labels) {
  Tensor h = ConvRelu(net, net->Pool(in, {.size = 5, .stride = 3}), 128, kOne);
  h = net->Dropout(net->Pointwise(net->FullyConnected(h, 1024)));
  net->Loss(net->Pointwise(net->FullyConnected(h, kClasses)), labels);
}

constexpr int64_t AuxiliaryWeights(int64_t channels) {
  return channels * 128 + 128 + 4 * 4 * 128 * 1024 + 1024 + 1024 * kClasses + kClasses;
}

// Appends the branches in parallel, with one relu after their concatenation.
Tensor AddInception(Network* net, Tensor in, const Inception& row) {
  const Tensor one = net->Conv(in, row.one, kOne);
  const Tensor three = net->Conv(ConvRelu(net, in, row.reduce_three, kOne), row.three, kThree);
  const Tensor five = net->Conv(ConvRelu(net, in, row.reduce_five, kOne), row.five, kFive);
  const Tensor pool = net->Conv(net->Pool(in, kThree), row.pool, kOne);
  return net->Pointwise(net->Concat({one, three, five, pool}));
}

}  // namespace

Network AlexNet(int64_t batch) {
  Network net(batch);
  const Tensor image = net.Input({3, 227, 227});
  const Tensor labels = net.Labels();
  Tensor h = ConvRelu(&net, image, 96, {.size = 11, .stride = 4});
  h = net.Pool(net.Normalise(h), kPool);
  h = ConvRelu(&net, h, 256, kFive);
  h = net.Pool(net.Normalise(h), kPool);
  h = ConvRelu(&net, h, 384, kThree);
  h = ConvRelu(&net, h, 384, kThree);
  h = net.Pool(ConvRelu(&net, h, 256, kThree), kPool);
  h = net.Dropout(net.Pointwise(net.FullyConnected(h, 4096)));
  h = net.Dropout(net.Pointwise(net.FullyConnected(h, 4096)));
  net.Loss(net.Pointwise(net.FullyConnected(h, kClasses)), labels);
  return net;
}

namespace {

Network GoogLeNetWith(int64_t batch, bool auxiliary) {
  Network net(batch);
  const Tensor image = net.Input({3, 224, 224});
  const Tensor labels = net.Labels();
  Tensor h = ConvRelu(&net, image, 64, {.size = 7, .stride = 2, .pad = 3});
  h = net.Normalise(net.Pool(h, kPool));
  h = ConvRelu(&net, h, 64, kOne);
  h = ConvRelu(&net, h, 192, kThree);
  h = net.Pool(net.Normalise(h), kPool);
  for (size_t i = 0; i < std::size(kInceptions); ++i) {
    if (kInceptions[i].pool_before) h = net.Pool(h, kPool);
    h = AddInception(&net, h, kInceptions[i]);
    if (i != k4a && i != k4d) continue;
    if (auxiliary) AddAuxiliary(&net, h, labels);
    if (!auxiliary) net.HoldWeights(AuxiliaryWeights(net.ShapeOf(h).channels));
  }
  h = net.Dropout(net.Pool(h, {.size = 7}));
  net.Loss(net.Pointwise(net.FullyConnected(h, kClasses)), labels);
  return net;
}

}  // namespace

Network GoogLeNet(int64_t batch) { return GoogLeNetWith(batch, false); }
Network GoogLeNetInTraining(int64_t batch) { return GoogLeNetWith(batch, true); }

}  // namespace hotpack::bench
