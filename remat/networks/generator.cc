#include "remat/networks/generator.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "remat/networks/convolutional.h"
#include "remat/networks/inception.h"
#include "remat/networks/k_means.h"
#include "remat/networks/recurrent.h"
#include "remat/networks/residual.h"
#include "remat/networks/speech.h"
#include "remat/networks/transformer.h"
#include "remat/networks/transformer_translation.h"
#include "remat/networks/translation.h"

namespace hotpack::remat {
namespace {

std::vector<Generator> All() {
  std::vector<Generator> all;
  // Each family's file lists its generators.
  for (auto* family :
       {&ConvolutionalGenerators, &InceptionGenerators, &KMeansGenerators, &LstmGenerators, &ResidualGenerators,
        &SpeechGenerators, &TransformerGenerators, &TransformerTranslationGenerators, &TranslationGenerators}) {
    for (Generator& generator : family()) {
      if (generator.network != nullptr) {
        for (Key& key : TrainingKeys()) generator.keys.push_back(std::move(key));
      }
      all.push_back(std::move(generator));
    }
  }
  std::sort(all.begin(), all.end(), [](const Generator& a, const Generator& b) { return a.name < b.name; });
  return all;
}

absl::Status Fault(const Generator& generator, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(generator.name, ": ", what));
}

// Debian's Abseil has its own string_view.
absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// Quotes a text on one line, with any characters in it escaped.
std::string Quoted(absl::string_view text) { return absl::StrCat("'", absl::Utf8SafeCEscape(text), "'"); }

absl::string_view NameOf(absl::string_view spec) { return spec.substr(0, spec.find_first_of(":,")); }

const Generator* Find(absl::string_view name) {
  const std::vector<Generator>& all = Generators();
  const auto found = std::find_if(all.begin(), all.end(), [name](const Generator& each) { return name == each.name; });
  return found == all.end() ? nullptr : &*found;
}

std::string NamesOf(const std::vector<Key>& keys) {
  return absl::StrJoin(keys, ", ", [](std::string* out, const Key& key) { absl::StrAppend(out, key.name); });
}

void AppendKeys(const std::vector<Key>& keys, std::string* text) {
  for (const Key& key : keys) {
    absl::StrAppend(text, "  ", key.name, "=", key.standard, "  from ", key.least, " to ", key.most, "; ", key.what,
                    "\n");
  }
}

class Reader {
 public:
  explicit Reader(const Generator& generator) : generator_(generator) {}

  absl::StatusOr<Parameters> Run(absl::string_view rest) {
    const std::vector<absl::string_view> parts = absl::StrSplit(rest, ',');
    for (size_t i = 0; i < parts.size() && !rest.empty(); ++i) {
      if (absl::Status status = Part(parts[i], i == 0); !status.ok()) return status;
    }
    for (const Key& key : generator_.keys) parameters_.emplace(key.name, key.standard);
    return std::move(parameters_);
  }

 private:
  absl::Status Part(absl::string_view part, bool first) {
    const size_t equals = part.find('=');
    if (equals != absl::string_view::npos) return Set(part.substr(0, equals), part.substr(equals + 1));
    if (!first || generator_.places.empty()) return Fault(generator_, absl::StrCat(Quoted(part), " is no KEY=NUMBER"));
    const std::vector<absl::string_view> numbers = absl::StrSplit(part, 'x');
    if (numbers.size() > generator_.places.size()) {
      return Fault(generator_, absl::StrCat(Quoted(part), ": no more than ", absl::StrJoin(generator_.places, "x"),
                                            " stand by their place"));
    }
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (absl::Status status = Set(generator_.places[i], numbers[i]); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Set(absl::string_view name, absl::string_view text) {
    const auto key = std::find_if(generator_.keys.begin(), generator_.keys.end(),
                                  [name](const Key& each) { return name == each.name; });
    if (key == generator_.keys.end()) {
      return Fault(generator_,
                   absl::StrCat("the key ", Quoted(name), " is not known; keys are ", NamesOf(generator_.keys)));
    }
    int64_t number = 0;
    if (!absl::SimpleAtoi(text, &number))
      return Fault(generator_, absl::StrCat(name, ": ", Quoted(text), " is no whole number"));
    if (number < key->least || number > key->most) {
      return Fault(generator_, absl::StrCat(name, ": ", number, " is not from ", key->least, " to ", key->most));
    }
    if (!parameters_.emplace(key->name, number).second) return Fault(generator_, absl::StrCat(name, " is given twice"));
    return absl::OkStatus();
  }

  const Generator& generator_;
  Parameters parameters_;
};

struct Request {
  const Generator* generator;
  Parameters parameters;
};

absl::StatusOr<Request> Read(absl::string_view spec) {
  const absl::string_view name = NameOf(spec);
  const Generator* generator = Find(name);
  if (generator == nullptr) {
    const std::string names = absl::StrJoin(
        Generators(), ", ", [](std::string* out, const Generator& each) { absl::StrAppend(out, each.name); });
    return absl::InvalidArgumentError(absl::StrCat("there is no generator ", Quoted(name), "; there are ", names));
  }
  absl::StatusOr<Parameters> parameters =
      Reader(*generator).Run(name.size() < spec.size() ? spec.substr(name.size() + 1) : "");
  if (!parameters.ok()) return parameters.status();
  return Request{generator, *std::move(parameters)};
}

}  // namespace

std::vector<Key> TrainingKeys() {
  return {{"weights", 1, 0, 1, "0: feature maps alone"},
          {"updates", 1, 0, 1, "0: the weights' gradients are kept"},
          {"states", 1, 0, 2, "the optimizer's, of a weight's size each: 1 momentum, 2 Adam"},
          {"stay", 1, 0, 1, "1: the weights' gradients have memory for good"}};
}

TrainingOptions TrainingOptionsOf(const Parameters& parameters) {
  TrainingOptions options;
  options.weights = parameters.at("weights") != 0;
  options.updates = parameters.at("updates") != 0;
  options.optimizer_states = static_cast<int>(parameters.at("states"));
  options.gradients_stay = parameters.at("stay") != 0;
  return options;
}

const std::vector<Generator>& Generators() {
  static const auto* const kAll = new std::vector<Generator>(All());
  return *kAll;
}

bool NamesGenerator(std::string_view spec) { return Find(NameOf(View(spec))) != nullptr; }

absl::StatusOr<Network> GenerateNetwork(std::string_view spec, TrainingOptions* options) {
  absl::StatusOr<Request> request = Read(View(spec));
  if (!request.ok()) return request.status();
  if (request->generator->network == nullptr) return Fault(*request->generator, "trains no network");
  if (options != nullptr) *options = TrainingOptionsOf(request->parameters);
  absl::StatusOr<Network> network = request->generator->network(request->parameters);
  if (!network.ok()) return Fault(*request->generator, network.status().message());
  return network;
}

absl::StatusOr<Graph> Generate(std::string_view spec) {
  absl::StatusOr<Request> request = Read(View(spec));
  if (!request.ok()) return request.status();
  absl::StatusOr<Graph> graph = absl::UnknownError("");
  if (request->generator->graph != nullptr) {
    graph = request->generator->graph(request->parameters);
    if (graph.ok() && !Check(*graph).ok()) graph = Check(*graph);
  } else {
    absl::StatusOr<Network> network = request->generator->network(request->parameters);
    graph = network.ok() ? TrainingGraph(*network, TrainingOptionsOf(request->parameters)) : network.status();
  }
  if (!graph.ok()) return Fault(*request->generator, graph.status().message());
  return graph;
}

std::string GeneratorHelp() {
  std::string text = "NAME[:NUMBERS][,KEY=NUMBER...]\n";
  for (const Generator& generator : Generators()) {
    const std::string places = generator.places.empty() ? "" : absl::StrCat(":", absl::StrJoin(generator.places, "x"));
    absl::StrAppend(&text, "\n", generator.name, places, "   ", generator.what, "\n");
    const size_t common = generator.network == nullptr ? 0 : TrainingKeys().size();
    AppendKeys({generator.keys.begin(), generator.keys.end() - static_cast<std::ptrdiff_t>(common)}, &text);
  }
  absl::StrAppend(&text, "\nKeys of all that train a network\n");
  AppendKeys(TrainingKeys(), &text);
  return text;
}

}  // namespace hotpack::remat
