#include "remat/networks/transformer.h"

#include "absl/strings/str_cat.h"
#include "remat/networks/builder.h"

namespace hotpack::remat {
namespace {

// Heads are views of the same memory (strided batches of products), so no kernel copies to separate them.
TensorId Attention(NetworkBuilder* net, TensorId x, const TransformerOptions& of) {
  const std::vector<int64_t> parted = {of.batch * of.heads, of.steps, of.width / of.heads};
  const auto head = [&] { return net->Reshape(net->FullyConnected(x, of.width), parted); };
  const TensorId query = head();
  const TensorId key = head();
  const TensorId value = head();
  const TensorId weights = net->Dropout(net->Softmax(net->BatchProduct(query, key, true)));
  const TensorId context = net->Reshape(net->BatchProduct(weights, value, false), {of.batch, of.steps, of.width});
  return net->Dropout(net->FullyConnected(context, of.width));
}

}  // namespace

absl::StatusOr<Network> Transformer(const TransformerOptions& options) {
  if (options.width % options.heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a width of ", options.width, " is no multiple of ", options.heads, " heads"));
  }
  NetworkBuilder net;
  const TensorId labels = net.Data("labels", {options.batch, options.steps});
  const TensorId words = net.Data("words", {options.batch, options.steps});
  TensorId x = net.Dropout(net.Embedding(words, options.vocabulary, options.width));
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    x = net.LayerNorm(net.Sum(Attention(&net, x, options), x));
    const TensorId hidden = net.Relu(net.FullyConnected(x, options.hidden));
    x = net.LayerNorm(net.Sum(net.Dropout(net.FullyConnected(hidden, options.width)), x));
  }
  net.Result(net.Softmax(net.FullyConnected(x, options.vocabulary)), labels);
  return net.Finish();
}

std::vector<Generator> TransformerGenerators() {
  Generator transformer = {"transformer",
                           "encoder of a Transformer (Vaswani et al. 2017)",
                           {"layers"},
                           {{"layers", 6, 1, 10'000, "of attention and two fully connected layers each"},
                            {"width", 512, 1, 1'000'000, "of a position, a multiple of the heads"},
                            {"heads", 8, 1, 10'000, "of each attention"},
                            {"hidden", 2048, 1, 10'000'000, "width between the two fully connected layers"},
                            {"steps", 256, 1, 1'000'000, "length of a sequence"},
                            BatchKey(32),
                            {"vocabulary", 32000, 1, 10'000'000, "words"}}};
  transformer.network = [](const Parameters& of) {
    return Transformer({of.at("layers"), of.at("width"), of.at("heads"), of.at("hidden"), of.at("steps"),
                        of.at("batch"), of.at("vocabulary")});
  };
  return {transformer};
}

}  // namespace hotpack::remat
