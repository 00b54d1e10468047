// A small residual net (He et al. 2016) that classifies images, written as a framework would run it without an
// allocator of its own: each result is allocated when it is produced and released at its last use.
//
//   stem: convolution, norm, SiLU
//   stages of blocks; each stage after the first halves the side and doubles the channels:
//     convolution, norm, SiLU, convolution, norm, + shortcut, SiLU
//     (the shortcut is the block's input, or its 1 × 1 convolution with norm where the shape changes)
//   mean over the positions, linear classifier, softmax
//
//   tensor                            allocated            released
//   weights, running statistics       before step 1        at the end
//   the optimizer's state             during step 1        at the end
//   gradients                         in the backward pass by ZeroGradients() of the next step
//   images                            by Prefetch()        in the backward pass of their batch
//   layers' inputs, batch statistics  forward              in the layer's backward pass
//   patches and other workspaces      by a layer           when that layer returns
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/train/classifier.h"
#include "bench/train/conv_layers.h"
#include "bench/train/conv_task.h"

namespace hotpack::train {

struct ConvShape {
  int image = 32;    // side, ≥ 1
  int width = 32;    // channels of the first stage, ≥ 1
  int stages = 3;    // ≥ 1
  int blocks = 2;    // a stage, ≥ 1
  int classes = 10;  // ≥ 2
};

// For numeric checks of the gradients: each layer and both kinds of shortcut. It is not narrower, because a norm
// cancels its weights' length. So differences are too coarse for a channel with few and small weights. Of 300 seeds,
// four fail at width 2, and none comes near the tolerance at width 3.
inline constexpr ConvShape kTinyConvShape = {.image = 4, .width = 3, .stages = 2, .blocks = 1, .classes = 3};
inline constexpr int kTinyConvRows = 4;

// A residual net on GratingTask's images. LossAndGradients() and Loss() use batch norm's statistics of the micro-batch.
// LossAndGradients() also moves the running ones. Loss() does not, so that its differences are those of one function.
// Evaluate() uses the running statistics.
class ConvNet : public Classifier {
 public:
  ConvNet(Device& device, const ConvShape& shape, uint64_t seed);

  Tensor LossAndGradients(float weight) override;

 private:
  // A convolution with its norm. Its parameters are weights, scale, shift, from `first` on.
  struct Unit {
    Convolution convolution;
    BatchNorm norm;
    size_t first;
  };
  struct UnitSaved {
    Tensor product;  // the convolution's result
    BatchNorm::Saved norm;
  };

  struct Block {
    Unit first, second;
    std::optional<Unit> projection;  // of the shortcut
  };
  struct BlockSaved {
    Tensor input;
    UnitSaved first, second, projection;
    Tensor first_sum, hidden;  // before and after the first activation
    Tensor sum;                // before the second
  };

  struct Saved {
    Tensor images;
    UnitSaved stem;
    Tensor stem_sum;
    std::vector<BlockSaved> blocks;
    Tensor pooled;
  };

  Batch MakeBatch(int64_t number, int rows) const override { return task_.MakeBatch(number, rows); }
  Tensor Logits(Tensor images, int rows, Purpose purpose) override;

  Unit MakeUnit(const Convolution& convolution, uint64_t seed);
  void MakeClassifier(uint64_t seed);

  // If `saved` is null, everything is released at its last use in the forward pass.
  Tensor UnitForward(Unit& unit, const Tensor& input, int rows, Statistics statistics, UnitSaved* saved);
  Tensor BlockForward(Block& block, Tensor input, int rows, Statistics statistics, BlockSaved* saved);
  Tensor Forward(Tensor images, int rows, Statistics statistics, Saved* saved);  // to the logits
  // The two parts of a unit's backward pass: to the gradient of the convolution's product, then to that of the unit's
  // input.
  Tensor NormBackward(Unit& unit, UnitSaved saved, const Tensor& gradient);
  Tensor ConvolutionBackward(Unit& unit, const Tensor& input, Tensor product_gradient, int rows);
  void ConvolutionWeightsBackward(Unit& unit, const Tensor& input, const Tensor& product_gradient, int rows);
  Tensor BlockBackward(Block& block, BlockSaved saved, Tensor gradient, int rows);
  Tensor ClassifierBackward(Tensor pooled, Tensor gradient, int rows);
  void Backward(Saved saved, Tensor logits_gradient, int rows);

  int LastChannels() const { return shape_.width << (shape_.stages - 1); }
  int LastPositions() const { return blocks_.back().second.convolution.patches.Positions(); }

  ConvShape shape_;
  GratingTask task_;
  Unit stem_;
  std::vector<Block> blocks_;
  size_t classifier_ = 0;  // weights, then biases
};

}  // namespace hotpack::train
