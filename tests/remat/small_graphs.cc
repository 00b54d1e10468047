#include "tests/remat/small_graphs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hotpack::remat {
namespace {

Storage Make(const std::string& name, Bytes bytes) {
  Storage storage;
  storage.name = name;
  storage.bytes = bytes;
  return storage;
}

}  // namespace

Graph Chain(int layers, Bytes bytes, Nanoseconds cost) {
  Graph graph;
  for (int i = 0; i <= layers; ++i) graph.storages.push_back(Make(absl::StrCat("x", i), bytes));
  for (int i = layers; i >= 0; --i) graph.storages.push_back(Make(absl::StrCat("g", i), bytes));
  graph.storages.front().given = true;
  graph.storages.back().kept = true;
  const auto add = [&](const std::string& name, std::vector<StorageId> reads, StorageId writes, Phase phase) {
    Operator& op = graph.operators.emplace_back();
    op.name = name;
    op.cost = cost;
    op.reads = std::move(reads);
    op.writes = {writes};
    op.phase = phase;
  };
  for (int i = 1; i <= layers; ++i) add(absl::StrCat("f", i), {i - 1}, i, Phase::kForward);
  add("loss", {layers}, layers + 1, Phase::kBackward);
  for (int i = layers; i >= 1; --i) {
    const int gradient = 2 * layers + 1 - i;  // g(i)
    add(absl::StrCat("b", i), {i - 1, gradient}, gradient + 1, Phase::kBackward);
  }
  return graph;
}

Graph RandomGraph(std::mt19937_64& random, int operators) {
  const auto draw = [&random](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  Graph graph;
  std::vector<StorageId> there;
  const auto add = [&](bool given) {
    const auto id = static_cast<StorageId>(graph.storages.size());
    graph.storages.push_back(Make(absl::StrCat("s", id), draw(0, 20) * 64));
    graph.storages.back().given = given;
    there.push_back(id);
    return id;
  };
  for (int64_t i = draw(1, 4); i > 0; --i) add(true);
  for (int i = 0; i < operators; ++i) {
    Operator op;
    op.name = absl::StrCat("op", i);
    op.cost = draw(0, 50);
    op.workspace = draw(0, 3) == 0 ? draw(1, 10) * 64 : 0;
    op.random = draw(0, 9) == 0;
    op.heavy = draw(0, 3) == 0;
    op.once = draw(0, 19) == 0;
    op.phase = 2 * i < operators ? Phase::kForward : Phase::kBackward;
    std::vector<StorageId> operands = there;
    std::shuffle(operands.begin(), operands.end(), random);
    operands.resize(std::min<size_t>(operands.size(), static_cast<size_t>(draw(1, 4))));
    for (StorageId id : operands) {
      const int64_t way = draw(0, 9);
      (way < 7 ? op.reads : way < 9 ? op.updates : op.writes).push_back(id);
    }
    for (int64_t made = draw(0, 2); made > 0; --made) {
      const StorageId id = add(false);
      op.writes.push_back(id);
      for (StorageId read : op.reads) {
        const bool fits =
            graph.storages[static_cast<size_t>(read)].bytes >= graph.storages[static_cast<size_t>(id)].bytes;
        if (fits && draw(0, 2) == 0) op.in_place.push_back({read, id});
      }
    }
    graph.operators.push_back(std::move(op));
  }
  for (Storage& storage : graph.storages) storage.kept = draw(0, 3) == 0;
  return graph;
}

Graph UpdateStep(int parameters, Bytes bytes) {
  Graph graph;
  const auto add = [&](const char* name, int number, Bytes size, bool given, bool kept, bool held) {
    const auto id = static_cast<StorageId>(graph.storages.size());
    graph.storages.push_back({.name = absl::StrCat(name, number), .bytes = size, .given = given, .kept = kept});
    graph.storages.back().held = held;
    graph.storages.back().movable = held && kept;
    graph.released_after.push_back(kNever);
    return id;
  };
  std::vector<StorageId> weights, gradients, states, temporaries;
  for (int i = 0; i < parameters; ++i) weights.push_back(add("w", i, bytes + i, true, true, true));
  for (int i = 0; i < parameters; ++i) gradients.push_back(add("g", i, bytes + i, false, true, true));
  for (int i = 0; i < parameters; ++i) states.push_back(add("m", i, bytes + i, true, true, false));
  for (int i = 0; i < parameters; ++i) temporaries.push_back(add("t", i, bytes + i, false, false, true));
  const StorageId rate = add("rate", 0, 8, false, false, false);
  for (int i = parameters; i-- > 0;) {
    graph.operators.push_back({.name = absl::StrCat("backward", i),
                               .cost = 100,
                               .reads = {weights[At(i)]},
                               .writes = {gradients[At(i)]},
                               .phase = Phase::kBackward});
  }
  DivisibleUpdate update = {.begin = static_cast<OperatorId>(graph.operators.size())};
  const auto run = [&](const char* name, Nanoseconds cost, std::vector<StorageId> reads, std::vector<StorageId> writes,
                       std::vector<StorageId> updates) {
    graph.operators.push_back({.name = name,
                               .cost = cost,
                               .reads = std::move(reads),
                               .writes = std::move(writes),
                               .updates = std::move(updates),
                               .phase = Phase::kUpdate});
  };
  run("rate", 1, {}, {rate}, {});
  std::vector<StorageId> both = gradients;
  both.insert(both.end(), weights.begin(), weights.end());
  run("decay", 31, both, temporaries, {});
  std::vector<StorageId> with_rate = temporaries;
  with_rate.push_back(rate);
  run("momentum", 17, with_rate, {}, states);
  for (StorageId id : temporaries) graph.released_after[At(id)] = static_cast<OperatorId>(graph.operators.size()) - 1;
  graph.released_after[At(rate)] = static_cast<OperatorId>(graph.operators.size()) - 1;
  for (int i = 0; i < parameters; ++i) run("item", 0, {states[At(i)]}, {}, {});
  run("step", 23, states, {}, weights);
  update.end = static_cast<OperatorId>(graph.operators.size());
  update.parts = parameters;
  update.part_of.assign(graph.storages.size(), -1);
  for (int i = 0; i < parameters; ++i) {
    for (const auto* list : {&weights, &gradients, &states, &temporaries}) update.part_of[At((*list)[At(i)])] = i;
  }
  graph.updates.push_back(update);
  return graph;
}

}  // namespace hotpack::remat
