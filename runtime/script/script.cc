#include "runtime/script/script.h"

#include <algorithm>
#include <map>

namespace hotpack {
namespace {

// Records the last user of each address: disjoint ranges of offsets, keyed by their start.
class LastUser {
 public:
  // Sets the user of [begin, end) and adds the previous users to `before` (each once, not sorted).
  void Overwrite(uint32_t begin, uint32_t end, uint32_t user, std::vector<uint32_t>* before) {
    Cut(begin);
    Cut(end);
    auto first = ranges_.lower_bound(begin), last = ranges_.lower_bound(end);
    for (auto it = first; it != last; ++it) before->push_back(it->second.user);
    ranges_.erase(first, last);
    ranges_[begin] = {end, user};
  }

 private:
  struct Range {
    uint32_t end;
    uint32_t user;
  };
  void Cut(uint32_t at) {
    auto it = ranges_.lower_bound(at);
    if (it == ranges_.begin()) return;
    --it;
    if (it->first >= at || it->second.end <= at) return;
    Range rest = it->second;
    it->second.end = at;
    ranges_[at] = rest;
  }
  std::map<uint32_t, Range> ranges_;
};

// Returns by entry i the entries that used addresses of i last, on the cycle. The first of two rounds only finds the
// predecessors of the cycle's first requests.
std::vector<std::vector<uint32_t>> FindPredecessors(const std::vector<ScriptEntry>& entries, uint32_t n) {
  std::vector<std::vector<uint32_t>> predecessors(n);
  LastUser last;
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < n; ++i) {
      const ScriptEntry& entry = entries[i];
      if (entry.offset == kNone) continue;
      std::vector<uint32_t>& before = predecessors[i];
      before.clear();
      last.Overwrite(entry.offset, entry.offset + entry.units, i, &before);
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
    }
  }
  return predecessors;
}

void Connect(Script* script) {
  uint32_t n = script->size();
  std::vector<std::vector<uint32_t>> predecessors = FindPredecessors(script->entries, n);
  std::vector<uint32_t> count(n + 1, 0);
  for (uint32_t i = 0; i < n; ++i) {
    script->entries[i].predecessors = static_cast<uint32_t>(predecessors[i].size());
    for (uint32_t p : predecessors[i]) ++count[p];
  }
  uint32_t sum = 0;
  for (uint32_t i = 0; i <= n; ++i) {
    script->entries[i].first_successor = sum;
    sum += count[i];
  }
  script->successors.resize(sum);
  std::vector<uint32_t> next(n);
  for (uint32_t i = 0; i < n; ++i) next[i] = script->entries[i].first_successor;
  for (uint32_t i = 0; i < n; ++i) {
    for (uint32_t p : predecessors[i]) script->successors[next[p]++] = i;
  }
}

void IndexContexts(Script* script) {
  uint32_t n = script->size();
  script->contexts.reserve(n);
  uint32_t window[Script::kContext];
  for (uint32_t i = 0; i < n; ++i) {
    for (uint32_t k = 0; k < Script::kContext; ++k) {
      window[k] = script->entries[(i + uint64_t{n} * Script::kContext - Script::kContext + k) % n].units;
    }
    script->contexts.emplace_back(ContextHash(window, Script::kContext), i);
  }
  std::sort(script->contexts.begin(), script->contexts.end());
}

}  // namespace

uint32_t ContextHash(const uint32_t* units, uint32_t count) {
  uint64_t hash = 0x243F6A8885A308D3u;
  for (uint32_t i = 0; i < count; ++i) hash = (hash ^ units[i]) * 0x9E3779B97F4A7C15u;
  return static_cast<uint32_t>(hash >> 32);
}

namespace {

// Computes the plan's memory: the zone's height, and of each fragment the part below its highest block.
void Measure(const std::vector<Fragment>& fragments, Script* script) {
  std::vector<uint32_t> top(fragments.size(), 0);
  uint32_t height = 0;
  for (const ScriptEntry& entry : script->entries) {
    if (entry.offset == kNone) continue;
    uint32_t end = entry.offset + entry.units;
    if (entry.offset >= script->zone_offset) {
      height = std::max(height, end - script->zone_offset);
      continue;
    }
    auto it = std::upper_bound(fragments.begin(), fragments.end(), entry.offset,
                               [](uint32_t offset, const Fragment& fragment) { return offset < fragment.offset; });
    auto k = static_cast<size_t>(it - fragments.begin()) - 1;
    top[k] = std::max(top[k], end - fragments[k].offset);
  }
  script->height_bytes = height * kBlockUnit;
  for (size_t k = 0; k < fragments.size(); ++k) {
    if (top[k] > 0) script->fragments.push_back(fragments[k]);
    script->fragment_bytes += top[k] * kBlockUnit;
  }
}

// Column c has the requests from c·n/columns up to the next column's first, at least one.
void NarrowLoad(Script* script) {
  const std::vector<uint64_t> units = LoadUnits(script->profile);
  if (units.empty()) return;
  for (size_t c = 0; c < kLoadColumns; ++c) {
    const size_t begin = c * units.size() / kLoadColumns, end = (c + 1) * units.size() / kLoadColumns;
    const auto from = units.begin() + static_cast<std::ptrdiff_t>(begin);
    script->load[c] =
        *std::max_element(from, from + static_cast<std::ptrdiff_t>(std::max<size_t>(1, end - begin))) * kBlockUnit;
  }
}

}  // namespace

Script CompileScript(const Profile& profile, const std::vector<uint32_t>& index, const std::vector<Offset>& offsets,
                     const std::vector<Fragment>& fragments, uint32_t zone_offset, Bytes lower_bound) {
  Script script;
  script.profile = profile;
  script.zone_offset = zone_offset;
  script.lower_bound_bytes = static_cast<uint64_t>(lower_bound);
  uint32_t n = script.size();
  script.entries.resize(n + 1);
  for (uint32_t i = 0; i < n; ++i) {
    script.entries[i].units = profile.blocks[i].units;
    script.entries[i].age = profile.blocks[i].planned ? profile.blocks[i].age : 0;
  }
  for (size_t k = 0; k < index.size(); ++k) {
    script.entries[index[k]].offset = static_cast<uint32_t>(static_cast<uint64_t>(offsets[k]) / kBlockUnit);
  }
  Measure(fragments, &script);
  NarrowLoad(&script);
  Connect(&script);
  IndexContexts(&script);
  return script;
}

}  // namespace hotpack
