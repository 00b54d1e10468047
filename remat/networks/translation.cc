#include "remat/networks/translation.h"

#include <algorithm>
#include <utility>

#include "remat/networks/builder.h"
#include "remat/networks/recurrent.h"

namespace hotpack::remat {
namespace {

class Translator {
 public:
  explicit Translator(const TranslationOptions& options) : of_(options) {}

  absl::StatusOr<TranslationNetwork> Run() {
    const TensorId labels = net_.Data("labels", {of_.steps, of_.batch});
    const std::vector<TensorId> source = Encode();
    const std::vector<TensorId> hidden = Decode(source);
    net_.Result(net_.Softmax(net_.FullyConnected(net_.Concat(hidden, 0), of_.target_words)), labels);
    absl::StatusOr<Network> network = net_.Finish();
    if (!network.ok()) return network.status();
    TranslationNetwork result = {*std::move(network), {}};
    for (const Layer& layer : result.network.layers) result.part_of.push_back(PartOf(layer.outputs.front()));
    return result;
  }

 private:
  // Indices of a part's results.
  struct Range {
    TensorId first, last;
    TranslationPart part;
  };
  TranslationPart PartOf(TensorId result) const {
    const auto range = std::find_if(ranges_.begin(), ranges_.end(), [result](const Range& each) {
      return each.first <= result && result <= each.last;
    });
    return range == ranges_.end() ? TranslationPart::kOther : range->part;
  }
  void Note(TranslationPart part, TensorId after, TensorId last) { ranges_.push_back({after + 1, last, part}); }

  std::vector<TensorId> Words(const char* name, int64_t words) {
    const TensorId numbers = net_.Data(name, {of_.steps, of_.batch});
    return Split(&net_, net_.Embedding(numbers, words, of_.embedding), of_.steps, {of_.batch, of_.embedding});
  }

  CellState Step(const CellWeights& weights, TensorId x, CellState before) {
    const TensorId marker = net_.Data("step", {1});  // no layer uses it
    const CellState state = LstmStep(&net_, weights, x, before);
    Note(TranslationPart::kRecurrent, marker, state.h);
    return state;
  }

  // Unrolls one layer and returns its results in the order of the words.
  std::vector<TensorId> Unroll(const std::vector<TensorId>& inputs, int64_t hidden, bool backwards) {
    const CellWeights weights = MakeLstmWeights(&net_, net_.ShapeOf(inputs.front()).back(), hidden);
    CellState state = ZeroState(&net_, of_.batch, hidden);
    std::vector<TensorId> results(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const size_t at = backwards ? inputs.size() - 1 - i : i;
      state = Step(weights, inputs[at], state);
      results[at] = state.h;
    }
    return results;
  }

  std::vector<TensorId> Encode() {
    const std::vector<TensorId> words = Words("source", of_.source_words);
    const std::vector<TensorId> there = Unroll(words, of_.hidden / 2, false),
                                back = Unroll(words, of_.hidden / 2, true);
    std::vector<TensorId> states;
    for (size_t i = 0; i < words.size(); ++i) states.push_back(net_.Concat({there[i], back[i]}, 1));
    for (int64_t layer = 1; layer < of_.layers; ++layer) states = Unroll(states, of_.hidden, false);
    return states;
  }

  // Adds keys that differ by step and a query that is the same for all steps.
  TensorId BroadcastSum(TensorId keys, TensorId query) {
    Layer layer;
    layer.kind = "broadcast_sum";
    layer.name = net_.NextName(layer.kind);
    layer.inputs = {keys, query};
    layer.outputs = {net_.NewTensor(layer.name, net_.ShapeOf(keys), TensorRole::kFeatureMap)};
    layer.flops = layer.gradient_flops = static_cast<double>(net_.ElementsOf(keys));
    return net_.Add(std::move(layer));
  }

  struct AttentionWeights {
    TensorId query, score, hidden;
  };
  // Returns the context for a query.
  TensorId Attend(const AttentionWeights& weights, TensorId states, TensorId keys, TensorId query) {
    const TensorId marker = net_.Data("attention", {1});
    TensorId scores = BroadcastSum(keys, net_.FullyConnected(query, of_.hidden, false, weights.query));
    if (of_.normalise) scores = net_.LayerNorm(scores);
    scores = net_.FullyConnected(net_.Tanh(scores), 1, false, weights.score);
    const TensorId shares = net_.Softmax(net_.Reshape(scores, {of_.batch, 1, of_.steps}));
    const TensorId context = net_.BatchProduct(shares, states, false);
    Note(TranslationPart::kAttention, marker, context);
    return net_.Reshape(context, {of_.batch, of_.hidden});
  }

  std::vector<TensorId> Decode(const std::vector<TensorId>& source) {
    const TensorId states = Rearranged(&net_, net_.Concat(source, 0), {of_.batch, of_.steps, of_.hidden});
    const TensorId keys = net_.FullyConnected(states, of_.hidden, false);
    const AttentionWeights attention = {net_.Weight({of_.hidden, of_.hidden}), net_.Weight({1, of_.hidden}),
                                        net_.Weight({of_.hidden, 2 * of_.hidden})};
    std::vector<CellWeights> weights;
    std::vector<CellState> cells;
    for (int64_t layer = 0; layer < of_.layers; ++layer) {
      weights.push_back(MakeLstmWeights(&net_, layer == 0 ? of_.embedding + of_.hidden : of_.hidden, of_.hidden));
      // The decoder's cells begin with the encoder's last step.
      cells.push_back({net_.Tanh(net_.FullyConnected(source.back(), of_.hidden)),
                       net_.Tanh(net_.FullyConnected(source.back(), of_.hidden))});
    }
    std::vector<TensorId> hidden;
    TensorId before = net_.Data("hidden0", {of_.batch, of_.hidden});
    for (TensorId word : Words("target", of_.target_words)) {
      TensorId x = net_.Concat({word, before}, 1);
      for (size_t layer = 0; layer < weights.size(); ++layer) {
        cells[layer] = Step(weights[layer], x, cells[layer]);
        x = cells[layer].h;
      }
      const TensorId context = Attend(attention, states, keys, x);
      before = net_.Tanh(net_.FullyConnected(net_.Concat({x, context}, 1), of_.hidden, false, attention.hidden));
      hidden.push_back(before);
    }
    return hidden;
  }

  const TranslationOptions& of_;
  NetworkBuilder net_;
  std::vector<Range> ranges_;
};

}  // namespace

absl::StatusOr<TranslationNetwork> Translation(const TranslationOptions& options) {
  if (options.hidden % 2 != 0)
    return absl::InvalidArgumentError("an odd width cannot be halved between two directions");
  return Translator(options).Run();
}

std::vector<Generator> TranslationGenerators() {
  Generator nmt = {"nmt",
                   "translation by LSTM with attention, as Echo's experiments train it",
                   {"layers"},
                   {{"layers", 2, 1, 1000, "of encoder and of decoder each"},
                    {"hidden", 512, 2, 1'000'000, "of a layer, even"},
                    {"embedding", 512, 1, 1'000'000, "of a word"},
                    {"steps", 100, 1, 2000, "words of a sentence"},
                    BatchKey(128),
                    {"source", 17191, 1, 10'000'000, "words of its language"},
                    {"target", 7709, 1, 10'000'000, "words of its language"},
                    {"normalise", 0, 0, 1, "1: layer normalisation in the attention"}}};
  nmt.network = [](const Parameters& of) -> absl::StatusOr<Network> {
    absl::StatusOr<TranslationNetwork> made =
        Translation({of.at("layers"), of.at("hidden"), of.at("embedding"), of.at("steps"), of.at("batch"),
                     of.at("source"), of.at("target"), of.at("normalise") != 0});
    if (!made.ok()) return made.status();
    return std::move(made->network);
  };
  return {nmt};
}

}  // namespace hotpack::remat
