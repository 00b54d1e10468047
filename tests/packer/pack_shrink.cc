#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "pack_checks.h"
#include "packer/csv.h"

namespace hotpack::testing {
namespace {

class Shrinker {
 public:
  Shrinker(const std::function<std::optional<Fault>(const Instance&)>& check, Fault fault, Instance* instance)
      : check_(check), fault_(std::move(fault)), instance_(*instance) {}

  // Until a whole round brings nothing.
  Fault Run() {
    for (bool smaller = true; smaller;) {
      smaller = DropBlocks();
      for (size_t block = 0; block < instance_.blocks.size(); ++block) smaller = Simplify(block) || smaller;
    }
    return fault_;
  }

 private:
  bool Try(Instance candidate) {
    if (CheckInstance(candidate) != PackStatus::kOk) return false;
    std::optional<Fault> fault = check_(candidate);
    if (!fault.has_value() || fault->kind != fault_.kind) return false;
    fault_ = std::move(*fault);
    instance_ = std::move(candidate);
    return true;
  }

  template <typename Change>
  bool TryChange(size_t block, Change change) {
    Instance candidate = instance_;
    change(&candidate.blocks[block]);
    return Try(std::move(candidate));
  }

  bool DropBlocks() {
    bool dropped = false;
    for (size_t block = instance_.blocks.size(); block-- > 0 && instance_.blocks.size() > 1;) {
      Instance candidate = instance_;
      candidate.blocks.erase(candidate.blocks.begin() + static_cast<std::ptrdiff_t>(block));
      dropped = Try(std::move(candidate)) || dropped;
    }
    return dropped;
  }

  // Each change makes a nonnegative number smaller, so this ends.
  bool Simplify(size_t block) {
    bool simpler = false;
    const auto of = [&]() -> const Block& { return instance_.blocks[block]; };
    for (size_t i = of().residency.size(); i-- > 0 && of().residency.size() > 1;) {
      simpler = TryChange(block, [&](Block* b) { b->residency.erase(b->residency.begin() + i); }) || simpler;
    }
    for (size_t i = 0; i < of().residency.size(); ++i) {
      while (of().residency[i].end - of().residency[i].begin > 1 &&
             (TryChange(block, [&](Block* b) { --b->residency[i].end; }) ||
              TryChange(block, [&](Block* b) { ++b->residency[i].begin; }))) {
        simpler = true;
      }
    }
    if (of().alignment > 1) simpler = TryChange(block, [](Block* b) { b->alignment = 1; }) || simpler;
    if (of().pinned != kNotPinned) simpler = TryChange(block, [](Block* b) { b->pinned = kNotPinned; }) || simpler;
    while (of().size > 1 &&
           (TryChange(block, [](Block* b) { b->size /= 2; }) || TryChange(block, [](Block* b) { --b->size; }))) {
      simpler = true;
    }
    return simpler;
  }

  const std::function<std::optional<Fault>(const Instance&)>& check_;
  Fault fault_;
  Instance& instance_;
};

}  // namespace

Fault Shrink(const std::function<std::optional<Fault>(const Instance&)>& check, Fault fault, Instance* instance) {
  return Shrinker(check, std::move(fault), instance).Run();
}

std::string Describe(const Instance& instance) {
  Clock first = std::numeric_limits<Clock>::max();
  for (const Block& block : instance.blocks) first = std::min(first, block.residency.front().begin);
  Instance moved = instance;
  std::string pins;
  for (size_t i = 0; i < moved.blocks.size(); ++i) {
    for (Residency& residency : moved.blocks[i].residency) residency = {residency.begin - first, residency.end - first};
    if (moved.blocks[i].pinned == kNotPinned) continue;
    pins.append(" ").append(std::to_string(i)).append("@").append(std::to_string(moved.blocks[i].pinned));
  }
  std::string text = FormatCsv(moved, {}, nullptr);
  if (!pins.empty()) text.append("pins:").append(pins).append("\n");
  return text;
}

}  // namespace hotpack::testing
