#include "remat/files/graph_json.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <queue>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "remat/files/update_parts.h"

namespace hotpack::remat {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "hotpack-graph";
constexpr int kVersion = 1;
constexpr const char* kRecordedFormat = "hotpack-step";  // of PyTorch, docs/graph_format.md
// The first of a kind is the one that is written.
constexpr std::pair<const char*, StorageKind> kKinds[] = {{"feature-map", StorageKind::kFeatureMap},
                                                          {"weight", StorageKind::kWeight},
                                                          {"workspace", StorageKind::kWorkspace},
                                                          {"other", StorageKind::kOther},
                                                          {"parameter", StorageKind::kWeight},
                                                          {"buffer", StorageKind::kWeight},
                                                          {"optimizer_state", StorageKind::kWeight},
                                                          {"gradient", StorageKind::kOther},
                                                          {"input", StorageKind::kOther},
                                                          {"saved", StorageKind::kFeatureMap},
                                                          {"temporary", StorageKind::kFeatureMap}};
constexpr std::pair<const char*, Phase> kPhases[] = {
    {"forward", Phase::kForward}, {"backward", Phase::kBackward}, {"update", Phase::kUpdate}};

struct Wrong {
  std::string what;
};

template <typename Value, size_t n>
Value Named(const std::pair<const char*, Value> (&names)[n], const std::string& name, const std::string& where) {
  for (const auto& [text, value] : names) {
    if (name == text) return value;
  }
  throw Wrong{absl::StrCat(where, ": '", name, "' is not known")};
}
template <typename Value, size_t n>
const char* NameOf(const std::pair<const char*, Value> (&names)[n], Value wanted) {
  return std::find_if(std::begin(names), std::end(names),
                      [wanted](const auto& entry) { return entry.second == wanted; })
      ->first;
}

// One storage or operator of the document. Every key is read once; the keys left over are unknown.
class Object {
 public:
  Object(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) throw Wrong{absl::StrCat(where_, ": no object")};
  }
  const Json* Find(const char* key) {
    known_.insert(key);
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  const Json& Get(const char* key) {
    const Json* found = Find(key);
    if (found == nullptr) throw Wrong{absl::StrCat(where_, ": no ", key)};
    return *found;
  }
  std::string Text(const char* key) {
    const Json& value = Get(key);
    if (!value.is_string()) throw Wrong{absl::StrCat(where_, ": ", key, " is no text")};
    where_ = value.get<std::string>();
    return where_;
  }
  std::string Text(const char* key, const char* otherwise) {
    const Json* value = Find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) throw Wrong{absl::StrCat(where_, ": ", key, " is no text")};
    return value->get<std::string>();
  }
  bool Flag(const char* key) {
    const Json* value = Find(key);
    if (value != nullptr && !value->is_boolean())
      throw Wrong{absl::StrCat(where_, ": ", key, " is neither true nor false")};
    return value != nullptr && value->get<bool>();
  }
  int64_t Number(const char* key, const Json& value) const {
    const bool fits = value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
    if (!fits || value.get<int64_t>() < 0)
      throw Wrong{absl::StrCat(where_, ": ", key, " is no whole number from 0 on")};
    return value.get<int64_t>();
  }
  std::string where() const { return where_; }
  void Done() const {
    for (const auto& [key, value] : json_.items()) {
      if (!known_.contains(key)) throw Wrong{absl::StrCat(where_, ": '", key, "' is not known")};
    }
  }

 private:
  const Json& json_;
  std::string where_;
  std::set<std::string> known_;
};

// Returns by operator the ones that it must come after. If one operator alone makes a storage, it may be listed after
// its readers. If several change a storage, or it is given, the list's order counts.
std::vector<std::vector<OperatorId>> Predecessors(const Graph& graph) {
  struct Access {
    OperatorId op;
    bool changes;
    bool reads;
  };
  std::vector<std::vector<Access>> accesses(graph.storages.size());
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    const auto op = static_cast<OperatorId>(i);
    for (StorageId id : graph.operators[i].reads) accesses[static_cast<size_t>(id)].push_back({op, false, true});
    for (StorageId id : graph.operators[i].writes) accesses[static_cast<size_t>(id)].push_back({op, true, false});
    for (StorageId id : graph.operators[i].updates) accesses[static_cast<size_t>(id)].push_back({op, true, true});
  }
  std::vector<std::vector<OperatorId>> before(graph.operators.size());
  const auto add = [&before](OperatorId op, OperatorId first) {
    if (op != first) before[static_cast<size_t>(op)].push_back(first);
  };
  for (size_t id = 0; id < accesses.size(); ++id) {
    const auto changes =
        std::count_if(accesses[id].begin(), accesses[id].end(), [](const Access& access) { return access.changes; });
    if (changes == 1 && !graph.storages[id].given) {
      const auto maker =
          std::find_if(accesses[id].begin(), accesses[id].end(), [](const Access& access) { return access.changes; });
      for (const Access& access : accesses[id]) add(access.op, maker->op);
      continue;
    }
    OperatorId changed = -1;
    std::vector<OperatorId> readers;
    for (const Access& access : accesses[id]) {
      if (changed >= 0) add(access.op, changed);
      if (!access.changes) {
        readers.push_back(access.op);
        continue;
      }
      for (OperatorId reader : readers) add(access.op, reader);
      readers.clear();
      changed = access.op;
    }
  }
  return before;
}

// Returns operators of `before` that wait for each other in a cycle. Each one of `waiting` waits for another one of
// them.
std::vector<OperatorId> Cycle(const std::vector<std::vector<OperatorId>>& before, const std::vector<bool>& waiting) {
  std::vector<int64_t> place(before.size(), -1);
  std::vector<OperatorId> path;
  auto op = static_cast<OperatorId>(std::find(waiting.begin(), waiting.end(), true) - waiting.begin());
  while (place[static_cast<size_t>(op)] < 0) {
    place[static_cast<size_t>(op)] = static_cast<int64_t>(path.size());
    path.push_back(op);
    const auto& first = before[static_cast<size_t>(op)];
    op = *std::find_if(first.begin(), first.end(),
                       [&waiting](OperatorId other) { return waiting[static_cast<size_t>(other)]; });
  }
  path.erase(path.begin(), path.begin() + place[static_cast<size_t>(op)]);
  return path;
}

void Sort(Graph* graph) {
  const std::vector<std::vector<OperatorId>> before = Predecessors(*graph);
  std::vector<std::vector<OperatorId>> after(before.size());
  std::vector<size_t> missing(before.size());
  std::priority_queue<OperatorId, std::vector<OperatorId>, std::greater<>> ready;
  for (size_t i = 0; i < before.size(); ++i) {
    missing[i] = before[i].size();
    for (OperatorId first : before[i]) after[static_cast<size_t>(first)].push_back(static_cast<OperatorId>(i));
    if (missing[i] == 0) ready.push(static_cast<OperatorId>(i));
  }
  std::vector<Operator> sorted;
  std::vector<bool> waiting(before.size(), true);
  while (!ready.empty()) {
    const auto op = static_cast<size_t>(ready.top());
    ready.pop();
    waiting[op] = false;
    sorted.push_back(std::move(graph->operators[op]));
    for (OperatorId next : after[op]) {
      if (--missing[static_cast<size_t>(next)] == 0) ready.push(next);
    }
  }
  if (sorted.size() == before.size()) {
    graph->operators = std::move(sorted);
    return;
  }
  constexpr size_t kMax = 5;
  std::vector<std::string> names;
  for (OperatorId op : Cycle(before, waiting)) {
    names.push_back(names.size() == kMax ? "..." : graph->operators[static_cast<size_t>(op)].name);
    if (names.size() > kMax) break;
  }
  throw Wrong{absl::StrCat("a cycle: each of these operators needs the next, and the last the first: ",
                           absl::StrJoin(names, ", "))};
}

class Reader {
 public:
  Graph Read(const Json& document) {
    Object object(document, "the document");
    const std::string format = object.Text("format");
    recorded_ = format == kRecordedFormat;
    if ((format != kFormat && !recorded_) || object.Number("version", object.Get("version")) != kVersion) {
      throw Wrong{absl::StrCat("not of format ", recorded_ ? kRecordedFormat : kFormat, ", version ", kVersion)};
    }
    const Json& storages = List(object.Get("storages"), "storages");
    for (size_t i = 0; i < storages.size(); ++i) AddStorage(storages[i], i);
    const Json& operators = List(object.Get("operators"), "operators");
    for (size_t i = 0; i < operators.size(); ++i) AddOperator(operators[i], i);
    object.Find("comment");
    Done(object);
    if (recorded_) {
      graph_.updates = ReadUpdates(document, graph_);
      HoldUntilOverwritten();
      AddReleases();
    } else {
      Sort(&graph_);
    }
    return std::move(graph_);
  }

 private:
  // A recorded step has more keys than a planner needs.
  void Done(const Object& object) const {
    if (!recorded_) object.Done();
  }

  static const Json& List(const Json& json, const std::string& where) {
    if (!json.is_array()) throw Wrong{absl::StrCat(where, ": no list")};
    return json;
  }

  void AddStorage(const Json& json, size_t number) {
    Object object(json, absl::StrCat("storage ", number));
    Storage storage;
    storage.name = object.Text("name");
    storage.bytes = object.Number("bytes", object.Get("bytes"));
    storage.kind = Named(kKinds, object.Text("kind", "feature-map"), object.where());
    storage.given = object.Flag("given");
    storage.kept = object.Flag("kept");
    if (recorded_) {
      storage.held = object.Flag("held");
      AddRelease(&object);
      const std::string kind = object.Text("kind", "");
      storage.movable = storage.kept && (kind == "parameter" || kind == "gradient" || kind == "optimizer_state");
    }
    Done(object);
    if (!ids_.emplace(storage.name, static_cast<StorageId>(number)).second) {
      throw Wrong{absl::StrCat("storage '", storage.name, "' is there twice")};
    }
    graph_.storages.push_back(std::move(storage));
  }

  StorageId Find(const Json& name, const std::string& where) const {
    const auto found = name.is_string() ? ids_.find(name.get<std::string>()) : ids_.end();
    if (found == ids_.end()) throw Wrong{absl::StrCat(where, ": there is no storage ", name.dump())};
    return found->second;
  }
  std::vector<StorageId> Ids(Object* object, const char* key) const {
    std::vector<StorageId> ids;
    if (const Json* names = object->Find(key)) {
      for (const Json& name : List(*names, absl::StrCat(object->where(), ": ", key)))
        ids.push_back(Find(name, object->where()));
    }
    return ids;
  }

  void AddOperator(const Json& json, size_t number) {
    Object object(json, absl::StrCat("operator ", number));
    Operator op;
    op.name = object.Text("name");
    op.cost = object.Number("cost_ns", object.Get("cost_ns"));
    op.reads = Ids(&object, "reads");
    op.writes = Ids(&object, "writes");
    op.updates = Ids(&object, "updates");
    if (const Json* pairs = object.Find("in_place")) {
      for (const Json& pair : List(*pairs, absl::StrCat(object.where(), ": in_place"))) {
        if (!pair.is_array() || pair.size() != 2) throw Wrong{absl::StrCat(object.where(), ": in_place: no pair")};
        op.in_place.push_back({Find(pair[0], object.where()), Find(pair[1], object.where())});
      }
    }
    op.masks = Ids(&object, "masks");
    if (const Json* bytes = object.Find("workspace")) op.workspace = object.Number("workspace", *bytes);
    op.phase = Named(kPhases, object.Text("phase", "forward"), object.where());
    op.heavy = object.Flag("heavy");
    op.random = object.Flag("random");
    const bool collective = object.Flag("collective");
    op.once = object.Flag("once") || collective || (recorded_ && object.Flag("unrepeatable"));
    if (recorded_) op.name = WithPlace(op.name, &object);
    Done(object);
    graph_.operators.push_back(std::move(op));
  }

  // The operator after which the program frees the storage; null: it lives on. -1: before the first one.
  void AddRelease(Object* object) {
    const Json* released = object->Find("released");
    OperatorId after = kNever;
    if (released != nullptr && !released->is_null()) {
      const bool fits = released->is_number_integer() &&
                        (!released->is_number_unsigned() || released->get<uint64_t>() < INT32_MAX) &&
                        released->get<int64_t>() >= -1;
      if (!fits) throw Wrong{absl::StrCat(object->where(), ": released is no operator's number")};
      after = static_cast<OperatorId>(released->get<int64_t>());
    }
    graph_.released_after.push_back(after);
  }

  // aten::addmm (layers.0, train.py:20)
  static std::string WithPlace(const std::string& name, Object* object) {
    std::string place = object->Text("module", "");
    const std::string line = object->Text("line", "");
    if (!line.empty()) absl::StrAppend(&place, place.empty() ? "" : ", ", line);
    return place.empty() ? name : absl::StrCat(name, " (", place, ")");
  }

  // What the program holds stays until other contents take its place, used or not: to write it is to change it.
  void HoldUntilOverwritten() {
    std::vector<bool> has(graph_.storages.size());
    for (size_t id = 0; id < has.size(); ++id) has[id] = graph_.storages[id].given;
    for (Operator& op : graph_.operators) {
      const auto holds = [&](StorageId id) { return has[At(id)] && graph_.storages[At(id)].held; };
      std::copy_if(op.writes.begin(), op.writes.end(), std::back_inserter(op.updates), holds);
      std::erase_if(op.writes, holds);
      for (StorageId id : op.writes) has[At(id)] = true;
    }
  }

  // Contents that the program holds beyond their last use get one more use where it frees them. An operator that costs
  // nothing stands for that.
  //
  //   operators   0 1 2 3 4        x is last used by 1 and freed after 3:   0 1 2 3 release(x) 4
  void AddReleases() {
    const size_t count = graph_.operators.size();
    std::vector<OperatorId> last(graph_.storages.size(), -1);
    const std::vector<std::vector<OperatorId>> uses = UsesOf(graph_);
    std::vector<std::vector<StorageId>> freed(count);
    for (size_t id = 0; id < graph_.storages.size(); ++id) {
      const OperatorId after = graph_.released_after[id];
      if (after != kNever && static_cast<size_t>(after + 1) > count) {
        throw Wrong{absl::StrCat("storage '", graph_.storages[id].name, "': released after operator ", after,
                                 ", which is not there")};
      }
      if (!uses[id].empty()) last[id] = uses[id].back();
      if (graph_.storages[id].held && after != kNever && after >= 0 && after > last[id])
        freed[static_cast<size_t>(after)].push_back(static_cast<StorageId>(id));
    }
    std::vector<OperatorId> at(count);  // where each operator stands now
    std::vector<Operator> operators;
    for (size_t i = 0; i < count; ++i) {
      at[i] = static_cast<OperatorId>(operators.size());
      const Phase phase = graph_.operators[i].phase;
      operators.push_back(std::move(graph_.operators[i]));
      if (freed[i].empty()) continue;
      Operator release = {.name = "release", .reads = freed[i], .phase = phase, .once = true};
      for (StorageId id : freed[i]) last[static_cast<size_t>(id)] = kNever;  // marks them
      operators.push_back(std::move(release));
    }
    for (DivisibleUpdate& update : graph_.updates) {
      const bool is_last = At(update.end) == count;
      update.end = is_last ? static_cast<OperatorId>(operators.size()) : at[At(update.end)];
      update.begin = at[At(update.begin)];
    }
    graph_.operators = std::move(operators);
    for (size_t id = 0; id < graph_.storages.size(); ++id) {
      OperatorId& after = graph_.released_after[id];
      if (after == kNever || after < 0) continue;
      after = at[static_cast<size_t>(after)] + (last[id] == kNever ? 1 : 0);
    }
  }

  bool recorded_ = false;
  Graph graph_;
  absl::flat_hash_map<std::string, StorageId> ids_;
};

}  // namespace

absl::StatusOr<Graph> ParseGraphJson(std::string_view text, std::string_view file) {
  const std::string name(file);
  const Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) return absl::InvalidArgumentError(absl::StrCat(name, ": no JSON"));
  try {
    Graph graph = Reader().Read(document);
    if (const absl::Status status = Check(graph); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": ", status.message()));
    }
    return graph;
  } catch (const Wrong& wrong) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", wrong.what));
  }
}

std::string FormatGraphJson(const Graph& graph) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  Json storages = Json::array(), operators = Json::array();
  for (const Storage& storage : graph.storages) {
    std::string name = storage.name;
    for (int number = 2; !taken.insert(name).second; ++number) name = absl::StrCat(storage.name, "#", number);
    names.push_back(name);
    Json json = {{"name", name}, {"bytes", storage.bytes}, {"kind", NameOf(kKinds, storage.kind)}};
    if (storage.given) json["given"] = true;
    if (storage.kept) json["kept"] = true;
    storages.push_back(std::move(json));
  }
  const auto list = [&names](const std::vector<StorageId>& ids) {
    Json json = Json::array();
    for (StorageId id : ids) json.push_back(names[static_cast<size_t>(id)]);
    return json;
  };
  for (const Operator& op : graph.operators) {
    Json json = {{"name", op.name}, {"cost_ns", op.cost}, {"phase", NameOf(kPhases, op.phase)}};
    if (!op.reads.empty()) json["reads"] = list(op.reads);
    if (!op.writes.empty()) json["writes"] = list(op.writes);
    if (!op.updates.empty()) json["updates"] = list(op.updates);
    for (const InPlace& pair : op.in_place) json["in_place"].push_back(list({pair.read, pair.made}));
    if (!op.masks.empty()) json["masks"] = list(op.masks);
    if (op.workspace > 0) json["workspace"] = op.workspace;
    if (op.heavy) json["heavy"] = true;
    if (op.random) json["random"] = true;
    if (op.once) json["once"] = true;
    operators.push_back(std::move(json));
  }
  return Json{{"format", kFormat}, {"version", kVersion}, {"storages", storages}, {"operators", operators}}.dump(
             1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace hotpack::remat
