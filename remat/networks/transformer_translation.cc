#include "remat/networks/transformer_translation.h"

#include "absl/strings/str_cat.h"
#include "remat/networks/builder.h"

namespace hotpack::remat {
namespace {

class Translator {
 public:
  explicit Translator(const TransformerTranslationOptions& options) : of_(options) {}

  absl::StatusOr<Network> Run() {
    const TensorId labels = net_.Data("labels", {of_.batch, of_.steps});
    TensorId x = Words("source", of_.source_words);
    for (int64_t layer = 0; layer < of_.layers; ++layer) {
      const TensorId of = net_.LayerNorm(x);
      x = net_.Sum(net_.Dropout(Attention(of, of)), x);
      x = Hidden(x);
    }
    const TensorId source = net_.LayerNorm(x);
    x = Words("target", of_.target_words);
    for (int64_t layer = 0; layer < of_.layers; ++layer) {
      const TensorId of = net_.LayerNorm(x);
      x = net_.Sum(net_.Dropout(Attention(of, of)), x);
      x = net_.Sum(net_.Dropout(Attention(net_.LayerNorm(x), source)), x);
      x = Hidden(x);
    }
    net_.Result(net_.Softmax(net_.FullyConnected(net_.LayerNorm(x), of_.target_words)), labels);
    return net_.Finish();
  }

 private:
  TensorId Words(const char* name, int64_t words) {
    return net_.Dropout(net_.Embedding(net_.Data(name, {of_.batch, of_.steps}), words, of_.width));
  }

  // Heads are views of the same memory (strided batches of products).
  TensorId Attention(TensorId of, TensorId to) {
    const auto head = [&](TensorId x) {
      return net_.Reshape(net_.FullyConnected(x, of_.width), {of_.batch * of_.heads, of_.steps, of_.width / of_.heads});
    };
    const TensorId query = head(of), key = head(to), value = head(to);
    const TensorId shares = net_.Dropout(net_.Softmax(net_.BatchProduct(query, key, true)));
    return net_.FullyConnected(net_.Reshape(net_.BatchProduct(shares, value, false), {of_.batch, of_.steps, of_.width}),
                               of_.width);
  }

  TensorId Hidden(TensorId x) {
    const TensorId hidden = net_.Dropout(net_.Relu(net_.FullyConnected(net_.LayerNorm(x), of_.hidden)));
    return net_.Sum(net_.Dropout(net_.FullyConnected(hidden, of_.width)), x);
  }

  const TransformerTranslationOptions& of_;
  NetworkBuilder net_;
};

}  // namespace

absl::StatusOr<Network> TransformerTranslation(const TransformerTranslationOptions& options) {
  if (options.width % options.heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a width of ", options.width, " is no multiple of ", options.heads, " heads"));
  }
  return Translator(options).Run();
}

std::vector<Generator> TransformerTranslationGenerators() {
  Generator made = {"transformer_nmt",
                    "translation by a Transformer, encoder and decoder (Vaswani et al. 2017)",
                    {"layers"},
                    {{"layers", 6, 1, 1000, "of encoder and of decoder each"},
                     {"width", 512, 1, 1'000'000, "of a position, a multiple of the heads"},
                     {"heads", 8, 1, 10'000, "of each attention"},
                     {"hidden", 2048, 1, 10'000'000, "width between the two fully connected layers"},
                     {"steps", 64, 1, 1'000'000, "words of a sentence"},
                     BatchKey(64),
                     {"source", 32000, 1, 10'000'000, "words of its language"},
                     {"target", 32000, 1, 10'000'000, "words of its language"}}};
  made.network = [](const Parameters& of) {
    return TransformerTranslation({of.at("layers"), of.at("width"), of.at("heads"), of.at("hidden"), of.at("steps"),
                                   of.at("batch"), of.at("source"), of.at("target")});
  };
  return {made};
}

}  // namespace hotpack::remat
