#include "tools/report/block_notes.h"

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "tools/recording/stack_text.h"

namespace hotpack {
namespace {

class Names {
 public:
  Names(const Notes& notes, std::vector<std::string>* names) : notes_(notes), names_(names) {}

  NameOrdinal Of(const std::string& text) {
    if (text.empty()) return kNoName;
    const auto [at, added] = known_.try_emplace(text, static_cast<NameOrdinal>(names_->size()));
    if (added) names_->push_back(text);
    return at->second;
  }
  NameOrdinal Of(NameOrdinal noted) { return noted < notes_.names.size() ? Of(notes_.names[noted]) : kNoName; }

 private:
  const Notes& notes_;
  std::vector<std::string>* names_;
  absl::flat_hash_map<std::string, NameOrdinal> known_;
};

// The ranges open at a moment of the recording.
class OpenRanges {
 public:
  void Take(const RangeEdge& edge) {
    switch (edge.kind) {
      case RangeKind::kPush:
        nested_[edge.thread].push_back(edge.name);
        last_thread_ = edge.thread;
        break;
      case RangeKind::kPop:
        if (auto& stack = nested_[edge.thread]; !stack.empty()) stack.pop_back();
        break;
      case RangeKind::kStart:
        free_[edge.id] = edge.name;
        break;
      case RangeKind::kEnd:
        free_.erase(edge.id);
        break;
      case RangeKind::kMark:
        break;
    }
  }

  std::string Path(const Notes& notes, uint16_t thread) {
    std::string path;
    auto add = [&](NameOrdinal name) {
      if (name < notes.names.size()) path += (path.empty() ? "" : " / ") + notes.names[name];
    };
    for (const auto& [id, name] : free_) add(name);
    const auto& own = nested_[thread];
    for (NameOrdinal name : own.empty() ? nested_[last_thread_] : own) add(name);
    return path;
  }

 private:
  std::map<uint16_t, std::vector<NameOrdinal>> nested_;
  std::map<uint64_t, NameOrdinal> free_;  // by id
  uint16_t last_thread_ = 0;
};

void SetRanges(const TraceFile& file, const std::vector<uint64_t>& events, Names* names,
               std::vector<BlockNotes>* blocks) {
  OpenRanges open;
  size_t next = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    for (; next < file.notes.ranges.size() && file.notes.ranges[next].position <= events[i]; ++next) {
      open.Take(file.notes.ranges[next]);
    }
    (*blocks)[i].range = names->Of(open.Path(file.notes, file.trace.events[events[i]].thread));
  }
}

}  // namespace

std::vector<BlockNotes> NotesOfBlocks(const TraceFile& file, const std::vector<uint64_t>& events,
                                      std::vector<std::string>* names) {
  std::vector<BlockNotes> blocks(events.size());
  const Notes& notes = file.notes;
  if (notes.empty()) return blocks;
  Names known(notes, names);
  if (!notes.ranges.empty()) SetRanges(file, events, &known, &blocks);
  absl::flat_hash_map<uint64_t, size_t> by_id;
  for (size_t i = 0; i < events.size(); ++i) by_id[file.trace.events[events[i]].id] = i;
  for (const Launch& launch : notes.launches) {
    for (uint64_t k = launch.first_block; k < launch.first_block + launch.blocks && k < notes.launch_blocks.size();
         ++k) {
      const auto found = by_id.find(notes.launch_blocks[k]);
      if (found == by_id.end()) continue;
      BlockNotes& block = blocks[found->second];
      const NameOrdinal name = known.Of(launch.name);
      if (block.launches++ == 0) block.first_kernel = name;
      block.last_kernel = name;
    }
  }
  absl::flat_hash_map<NameOrdinal, NameOrdinal> stacks;  // many blocks share one
  for (const BlockStack& stack : notes.stacks) {
    const auto found = by_id.find(stack.id);
    if (found == by_id.end() || stack.stack >= notes.names.size()) continue;
    const auto [readable, is_new] = stacks.try_emplace(stack.stack, kNoName);
    if (is_new) readable->second = known.Of(ReadableStack(notes.names[stack.stack]));
    blocks[found->second].stack = readable->second;
  }
  return blocks;
}

}  // namespace hotpack
