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

}  // namespace hotpack::remat
