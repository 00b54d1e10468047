// A whole run of a network as in Chainer 3, by its documentation and behaviour (Sekiyama 2018, §5.1, uses 3 RC 1.0):
//  1. Weights and averages exist before the first iteration. The momentum method's state appears in the first update.
//  2. Gradients of weights live from one backward pass until the end of the next forward pass (`cleargrads` comes after
//     it). So they are carried over the boundary between two iterations.
//  3. The loss holds the graph, and the graph holds every output, until the whole backward pass has ended.
//  4. A second gradient of the same tensor gets its own memory, is added to the first, and is released.
#include "bench/models/layers.h"

namespace hotpack::bench {
namespace {

constexpr Bytes kElement = 4;
constexpr uint64_t kNone = UINT64_MAX;

}  // namespace

class Network::Run {
 public:
  explicit Run(const Network& net) : net_(net) {
    for (int64_t elements : net.held_) AllocateWeight(elements);
    for (const Layer& layer : net.layers_) {
      for (int64_t elements : layer.weights) AllocateWeight(elements);
      for (int64_t elements : layer.averages) tape_.Allocate(kElement * elements);
    }
  }

  void Infer() {
    tape_.Mark();
    net_.Infer(&tape_);
  }

  void Train() {
    tape_.Mark();
    Forward();
    ReleaseAll(&weight_gradients_);
    Backward();
    ReleaseAll(&forward_);
    if (states_) return;
    for (int64_t elements : weights_) tape_.Allocate(kElement * elements);
    states_ = true;
  }

  Trace End() {
    tape_.Mark();
    return tape_.trace();
  }

 private:
  void AllocateWeight(int64_t elements) {
    weights_.push_back(elements);
    tape_.Allocate(kElement * elements);
  }

  void ReleaseAll(std::vector<uint64_t>* blocks) {
    for (uint64_t block : *blocks) tape_.Release(block);
    blocks->clear();
  }

  void Workspace(const Layer& layer) {
    if (layer.workspace > 0) tape_.Use(layer.workspace);
  }

  void Forward() {
    for (size_t i = 0; i < net_.tensors_.size(); ++i) {
      if (net_.tensors_[i].given) forward_.push_back(tape_.Allocate(net_.BytesOf(static_cast<Tensor>(i))));
    }
    for (const Layer& layer : net_.layers_) {
      forward_.push_back(tape_.Allocate(net_.BytesOf(layer.out)));
      for (int64_t elements : layer.kept) forward_.push_back(tape_.Allocate(kElement * elements));
      Workspace(layer);
    }
  }

  void Backward() {
    std::vector<uint64_t> gradients(net_.tensors_.size(), kNone);
    for (auto layer = net_.layers_.rbegin(); layer != net_.layers_.rend(); ++layer) {
      uint64_t& of_out = gradients[static_cast<size_t>(layer->out)];
      if (of_out == kNone) of_out = tape_.Allocate(net_.BytesOf(layer->out));
      for (int64_t elements : layer->weights) weight_gradients_.push_back(tape_.Allocate(kElement * elements));
      Workspace(*layer);
      for (Tensor in : layer->in) {
        const auto i = static_cast<size_t>(in);
        if (net_.tensors_[i].given) continue;
        const uint64_t gradient = tape_.Allocate(net_.BytesOf(in));
        Workspace(*layer);
        if (gradients[i] == kNone) {
          gradients[i] = gradient;
        } else {
          tape_.Release(gradient);
        }
      }
      tape_.Release(of_out);
    }
  }

  const Network& net_;
  Tape tape_;
  std::vector<int64_t> weights_;            // elements
  std::vector<uint64_t> forward_;           // blocks held by the graph
  std::vector<uint64_t> weight_gradients_;  // blocks
  bool states_ = false;                     // whether the optimizer's states exist
};

Trace Network::RecordInference(int iterations) const {
  Run run(*this);
  for (int i = 0; i < iterations; ++i) run.Infer();
  return run.End();
}

Trace Network::RecordTraining(int iterations) const {
  Run run(*this);
  for (int i = 0; i < iterations; ++i) run.Train();
  return run.End();
}

}  // namespace hotpack::bench
