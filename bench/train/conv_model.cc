#include "bench/train/conv_model.h"

#include <utility>

#include "bench/train/kernels.h"

namespace hotpack::train {
ConvNet::ConvNet(Device& device, const ConvShape& shape, uint64_t seed)
    : Classifier(device, shape.classes),
      shape_(shape),
      task_(seed, shape.image, shape.classes),
      stem_(MakeUnit({{shape.image, kColors, 3, 1}, shape.width}, seed)) {
  const auto unit = [&](int side, int channels, int kernel, int stride, int out_channels) {
    return MakeUnit({{side, channels, kernel, stride}, out_channels}, seed);
  };
  int side = shape.image, channels = shape.width;
  for (int stage = 0; stage < shape.stages; ++stage) {
    for (int b = 0; b < shape.blocks; ++b) {
      const bool narrows = stage > 0 && b == 0;
      const int stride = narrows ? 2 : 1, out_channels = narrows ? 2 * channels : channels;
      Unit first = unit(side, channels, 3, stride, out_channels);
      const int out_side = first.convolution.patches.OutSide();
      Unit second = unit(out_side, out_channels, 3, 1, out_channels);
      std::optional<Unit> projection;
      if (narrows) projection.emplace(unit(side, channels, 1, stride, out_channels));
      blocks_.push_back({std::move(first), std::move(second), std::move(projection)});
      side = out_side;
      channels = out_channels;
    }
  }
  MakeClassifier(seed);
}

ConvNet::Unit ConvNet::MakeUnit(const Convolution& convolution, uint64_t seed) {
  const size_t first = parameters_.size();
  const int channels = convolution.out_channels;
  parameters_.emplace_back().value =
      RandomWeights(device_, convolution.patches.Columns(), channels, SeedOf(seed, first));
  parameters_.emplace_back().value = Filled(device_, channels, 1.0f);
  parameters_.emplace_back().value = Filled(device_, channels, 0.0f);
  return {convolution, BatchNorm(device_, channels), first};
}

void ConvNet::MakeClassifier(uint64_t seed) {
  classifier_ = parameters_.size();
  parameters_.emplace_back().value = RandomWeights(device_, LastChannels(), shape_.classes, SeedOf(seed, classifier_));
  parameters_.emplace_back().value = Filled(device_, shape_.classes, 0.0f);
}

Tensor ConvNet::UnitForward(Unit& unit, const Tensor& input, int rows, Statistics statistics, UnitSaved* saved) {
  Tensor product = unit.convolution.Forward(device_, parameters_[unit.first].value, input, rows);
  Tensor output = unit.norm.Forward(parameters_[unit.first + 1].value, parameters_[unit.first + 2].value, product,
                                    statistics, saved != nullptr ? &saved->norm : nullptr);
  if (saved != nullptr) saved->product = std::move(product);
  return output;
}

Tensor ConvNet::BlockForward(Block& block, Tensor input, int rows, Statistics statistics, BlockSaved* saved) {
  const auto part = [&](UnitSaved BlockSaved::*unit) { return saved != nullptr ? &(saved->*unit) : nullptr; };
  Tensor first_sum = UnitForward(block.first, input, rows, statistics, part(&BlockSaved::first));
  Tensor hidden = Silu(device_, first_sum);
  if (saved != nullptr) saved->first_sum = std::move(first_sum);
  first_sum.Reset();
  Tensor residual = UnitForward(block.second, hidden, rows, statistics, part(&BlockSaved::second));
  if (saved != nullptr) saved->hidden = std::move(hidden);
  hidden.Reset();
  Tensor sum;
  if (block.projection.has_value()) {
    const Tensor shortcut = UnitForward(*block.projection, input, rows, statistics, part(&BlockSaved::projection));
    sum = Add(device_, residual, shortcut);
  } else {
    sum = Add(device_, residual, input);
  }
  residual.Reset();
  if (saved != nullptr) saved->input = std::move(input);
  input.Reset();
  Tensor output = Silu(device_, sum);
  if (saved != nullptr) saved->sum = std::move(sum);
  return output;
}

Tensor ConvNet::Forward(Tensor images, int rows, Statistics statistics, Saved* saved) {
  Tensor stem_sum = UnitForward(stem_, images, rows, statistics, saved != nullptr ? &saved->stem : nullptr);
  if (saved != nullptr) saved->images = std::move(images);
  images.Reset();
  Tensor hidden = Silu(device_, stem_sum);
  if (saved != nullptr) saved->stem_sum = std::move(stem_sum);
  stem_sum.Reset();
  for (Block& block : blocks_) {
    BlockSaved* keep = saved != nullptr ? &saved->blocks.emplace_back() : nullptr;
    hidden = BlockForward(block, std::move(hidden), rows, statistics, keep);
  }
  Tensor pooled = AveragePool(device_, hidden, rows, LastPositions(), LastChannels());
  hidden.Reset();
  Tensor product(device_, static_cast<int64_t>(rows) * shape_.classes);
  MatMul(pooled.data(), parameters_[classifier_].value.data(), product.data(), rows, shape_.classes, LastChannels());
  if (saved != nullptr) saved->pooled = std::move(pooled);
  pooled.Reset();
  Tensor logits(device_, product.count());
  AddBias(product.data(), parameters_[classifier_ + 1].value.data(), logits.data(), rows, shape_.classes);
  return logits;
}

Tensor ConvNet::NormBackward(Unit& unit, UnitSaved saved, const Tensor& gradient) {
  Parameter* parameter = &parameters_[unit.first];
  BatchNorm::Gradients norm = unit.norm.Backward(parameter[1].value, saved.product, saved.norm, gradient);
  AddGradient(device_, parameter[1], std::move(norm.scale));
  AddGradient(device_, parameter[2], std::move(norm.shift));
  return std::move(norm.input);
}

void ConvNet::ConvolutionWeightsBackward(Unit& unit, const Tensor& input, const Tensor& product_gradient, int rows) {
  AddGradient(device_, parameters_[unit.first],
              unit.convolution.WeightGradient(device_, input, product_gradient, rows));
}

Tensor ConvNet::ConvolutionBackward(Unit& unit, const Tensor& input, Tensor product_gradient, int rows) {
  ConvolutionWeightsBackward(unit, input, product_gradient, rows);
  return unit.convolution.InputGradient(device_, parameters_[unit.first].value, product_gradient, rows);
}

Tensor ConvNet::BlockBackward(Block& block, BlockSaved saved, Tensor gradient, int rows) {
  Tensor sum_gradient = SiluBackward(device_, saved.sum, gradient);
  gradient.Reset();
  saved.sum.Reset();
  Tensor product_gradient = NormBackward(block.second, std::move(saved.second), sum_gradient);
  gradient = ConvolutionBackward(block.second, saved.hidden, std::move(product_gradient), rows);
  saved.hidden.Reset();
  Tensor first_gradient = SiluBackward(device_, saved.first_sum, gradient);
  gradient.Reset();
  saved.first_sum.Reset();
  product_gradient = NormBackward(block.first, std::move(saved.first), first_gradient);
  first_gradient.Reset();
  gradient = ConvolutionBackward(block.first, saved.input, std::move(product_gradient), rows);
  if (block.projection.has_value()) {
    product_gradient = NormBackward(*block.projection, std::move(saved.projection), sum_gradient);
    sum_gradient = ConvolutionBackward(*block.projection, saved.input, std::move(product_gradient), rows);
  }
  saved.input.Reset();
  return Add(device_, gradient, sum_gradient);
}

// Returns the gradient of the pooled features.
Tensor ConvNet::ClassifierBackward(Tensor pooled, Tensor gradient, int rows) {
  Parameter* parameter = &parameters_[classifier_];
  Tensor weight_gradient(device_, parameter[0].value.count());
  MatMulTransposedASliced(pooled.data(), gradient.data(), weight_gradient.data(), LastChannels(), shape_.classes, rows,
                          1);
  pooled.Reset();
  AddGradient(device_, parameter[0], std::move(weight_gradient));
  Tensor bias_gradient(device_, shape_.classes);
  SumSlices(gradient.data(), bias_gradient.data(), rows, shape_.classes);
  AddGradient(device_, parameter[1], std::move(bias_gradient));
  Tensor pooled_gradient(device_, static_cast<int64_t>(rows) * LastChannels());
  MatMulTransposedB(gradient.data(), parameter[0].value.data(), pooled_gradient.data(), rows, LastChannels(),
                    shape_.classes);
  return pooled_gradient;
}

void ConvNet::Backward(Saved saved, Tensor logits_gradient, int rows) {
  Tensor pooled_gradient = ClassifierBackward(std::move(saved.pooled), std::move(logits_gradient), rows);
  Tensor gradient = AveragePoolBackward(device_, pooled_gradient, rows, LastPositions(), LastChannels());
  pooled_gradient.Reset();
  for (size_t b = blocks_.size(); b-- > 0;) {
    gradient = BlockBackward(blocks_[b], std::move(saved.blocks[b]), std::move(gradient), rows);
  }
  Tensor stem_gradient = SiluBackward(device_, saved.stem_sum, gradient);
  gradient.Reset();
  saved.stem_sum.Reset();
  const Tensor product_gradient = NormBackward(stem_, std::move(saved.stem), stem_gradient);
  stem_gradient.Reset();
  ConvolutionWeightsBackward(stem_, saved.images, product_gradient, rows);
}

Tensor ConvNet::LossAndGradients(float weight) {
  Saved saved;
  return LossAndGradientsBy(
      weight,
      [&](Tensor images, int rows) { return Forward(std::move(images), rows, Statistics::kBatchAndRecord, &saved); },
      [&](Tensor gradient, int rows) { Backward(std::move(saved), std::move(gradient), rows); });
}

Tensor ConvNet::Logits(Tensor images, int rows, Purpose purpose) {
  const Statistics statistics = purpose == Purpose::kLoss ? Statistics::kBatch : Statistics::kRunning;
  return Forward(std::move(images), rows, statistics, nullptr);
}

}  // namespace hotpack::train
