#include "remat/files/dtr_log.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace hotpack::remat {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kRandom[] = {"dropout", "bernoulli", "multinomial", "rand", "normal_", "uniform_"};

constexpr std::string_view kHeavy[] = {"conv", "addmm", "bmm", "baddbmm", "matmul", "linear", "lstm", "rnn"};

template <size_t n>
bool HasOneOf(std::string_view name, const std::string_view (&words)[n]) {
  return std::any_of(std::begin(words), std::end(words),
                     [name](std::string_view word) { return name.find(word) != name.npos; });
}
bool IsHeavy(std::string_view name) {
  return name == "mm" || (HasOneOf(name, kHeavy) && name.find("bilinear") == name.npos);
}
bool IsBackward(std::string_view name) { return name.find("backward") != name.npos; }

// Finds where the backward pass begins: at the first operator with that name behind all convolutions and normalisations
// without it. One log has a pooling of the forward pass under such a name.
void FindPhases(Graph* graph) {
  constexpr std::string_view kForwardOnly[] = {"conv", "norm"};
  std::vector<Operator>& operators = graph->operators;
  const auto last = std::find_if(operators.rbegin(), operators.rend(), [&](const Operator& op) {
    return !IsBackward(op.name) && HasOneOf(op.name, kForwardOnly);
  });
  auto at = std::find_if(last.base(), operators.end(), [](const Operator& op) { return IsBackward(op.name); });
  for (; at != operators.end(); ++at) at->phase = Phase::kBackward;
}

void AddOnce(std::vector<StorageId>* list, StorageId id) {
  if (std::find(list->begin(), list->end(), id) == list->end()) list->push_back(id);
}

// The member that a line lacks. Thrown to Reader::Line.
struct Lacks {
  std::string what;
};

const Json& Field(const Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end()) throw Lacks{absl::StrCat("no ", key)};
  return *found;
}
std::string Text(const Json& line, const char* key) {
  const Json& value = Field(line, key);
  if (!value.is_string()) throw Lacks{absl::StrCat(key, " is no text")};
  return value.get<std::string>();
}
// The logs write numbers as text.
int64_t Number(const Json& line, const char* key, int64_t least) {
  const Json& value = Field(line, key);
  int64_t number = 0;
  if (value.is_number_integer()) {
    number = value.get<int64_t>();
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
      throw Lacks{absl::StrCat(key, " '", text, "' is no number")};
  } else {
    throw Lacks{absl::StrCat(key, " is no number")};
  }
  if (number < least) throw Lacks{absl::StrCat(key, " is ", number)};
  return number;
}

class Reader {
 public:
  // Reads a line. Returns an empty string, or the fault.
  std::string Line(std::string_view text) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object()) return "no JSON object";
    try {
      const std::string instruction = Text(line, "INSTRUCTION");
      if (instruction == "CONSTANT") {
        constant_ = Text(line, "NAME");
      } else if (instruction == "MEMORY") {
        Memory(Text(line, "NAME"), Number(line, "MEMORY", 0));
      } else if (instruction == "ALIAS") {
        Alias(Text(line, "NAME"), Number(line, "ALIAS", -1));
      } else if (instruction == "COPY") {
        Name(Text(line, "DST"), Find(Text(line, "SRC")));
      } else if (instruction == "RELEASE") {
        Release(Text(line, "NAME"));
      } else if (instruction == "CALL" || instruction == "MUTATE") {
        Run(line, instruction == "MUTATE");
      } else if (instruction != "ANNOTATE") {
        return absl::StrCat("'", instruction, "' is no instruction");
      }
    } catch (const Lacks& lacks) {
      return lacks.what;
    }
    return "";
  }

  Graph End() {
    for (const auto& [name, id] : names_) {
      graph_.storages[static_cast<size_t>(id)].kept = true;
      graph_.released_after[static_cast<size_t>(id)] = kNever;
    }
    for (Storage& storage : graph_.storages) {
      if (storage.given) storage.kind = storage.kept ? StorageKind::kWeight : StorageKind::kOther;
    }
    return std::move(graph_);
  }

 private:
  StorageId Find(const std::string& name) const {
    const auto found = names_.find(name);
    if (found == names_.end()) throw Lacks{absl::StrCat("there is no '", name, "'")};
    return found->second;
  }
  void Name(const std::string& name, StorageId id) {
    if (!names_.emplace(name, id).second) throw Lacks{absl::StrCat("'", name, "' is there already")};
    ++references_[static_cast<size_t>(id)];
  }
  StorageId Add(const std::string& name, Bytes bytes) {
    const auto id = static_cast<StorageId>(graph_.storages.size());
    graph_.storages.push_back({name, bytes});
    graph_.released_after.push_back(kNever);
    references_.push_back(0);
    Name(name, id);
    return id;
  }

  void Memory(const std::string& name, Bytes bytes) {
    if (constant_ != name) {
      memory_ = bytes;  // of a result; its ALIAS follows
      return;
    }
    constant_.reset();
    const StorageId id = Add(name, bytes);
    if (graph_.operators.empty()) {
      graph_.storages[static_cast<size_t>(id)].given = true;
      return;
    }
    Operator& op = graph_.operators.emplace_back();
    op.name = "constant";
    op.writes = {id};
    op.once = true;
  }

  void Alias(const std::string& name, int64_t argument) {
    if (!memory_) throw Lacks{absl::StrCat("no MEMORY of '", name, "' before it")};
    const Bytes bytes = *std::exchange(memory_, std::nullopt);
    if (argument >= 0) {
      if (static_cast<size_t>(argument) >= arguments_.size())
        throw Lacks{absl::StrCat("the operator has no argument ", argument)};
      Name(name, arguments_[static_cast<size_t>(argument)]);
      return;
    }
    if (graph_.operators.empty()) throw Lacks{"no operator before it"};
    const StorageId id = Add(name, bytes);
    graph_.operators.back().writes.push_back(id);
  }

  void Release(const std::string& name) {
    const StorageId id = Find(name);
    names_.erase(name);
    if (--references_[static_cast<size_t>(id)] == 0) {
      graph_.released_after[static_cast<size_t>(id)] = static_cast<OperatorId>(graph_.operators.size()) - 1;
    }
  }

  void Run(const Json& line, bool mutates) {
    Operator op;
    op.name = Text(line, "NAME");
    op.cost = Number(line, "TIME", 0);
    op.random = HasOneOf(op.name, kRandom);
    op.heavy = IsHeavy(op.name);
    arguments_.clear();
    for (const Json& argument : Field(line, "ARGS")) {
      if (!argument.is_string()) throw Lacks{"an argument is no text"};
      arguments_.push_back(Find(argument.get<std::string>()));
    }
    if (mutates) {
      for (const Json& index : Field(line, "MUTATE")) {
        if (!index.is_number_unsigned() || index.get<size_t>() >= arguments_.size())
          throw Lacks{"MUTATE names an argument that is none"};
        AddOnce(&op.updates, arguments_[index.get<size_t>()]);
      }
    }
    for (StorageId id : arguments_) {
      if (std::find(op.updates.begin(), op.updates.end(), id) == op.updates.end()) AddOnce(&op.reads, id);
    }
    graph_.operators.push_back(std::move(op));
  }

  Graph graph_;
  absl::flat_hash_map<std::string, StorageId> names_;
  std::vector<int64_t> references_;  // by storage
  std::optional<std::string> constant_;
  std::optional<Bytes> memory_;
  std::vector<StorageId> arguments_;  // of the last operator
};

}  // namespace

absl::StatusOr<Graph> ParseDtrLog(std::string_view text, std::string_view file) {
  const std::string name(file);
  Reader reader;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line == "\r") continue;
    if (const std::string fault = reader.Line(line); !fault.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(name, ":", number, ": ", fault));
    }
  }
  Graph graph = reader.End();
  FindPhases(&graph);
  if (graph.operators.empty()) return absl::InvalidArgumentError(absl::StrCat(name, ":1: no operators"));
  if (const absl::Status status = Check(graph); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", status.message()));
  }
  return graph;
}

}  // namespace hotpack::remat
