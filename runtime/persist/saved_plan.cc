#include "runtime/persist/saved_plan.h"

#include <algorithm>

#include "packer/pack.h"
#include "runtime/script/plan_builder.h"

namespace hotpack {
namespace {

// Matches two sequences backwards: the planned entries of a script, and the requests that may have been such entries.
class Alignment {
 public:
  Alignment(const HistoryTail& tail, const Script& script, uint64_t anchor) : tail_(tail), script_(script) {
    const uint32_t n = script.size();
    for (uint32_t i = 0; i < n; ++i) {
      if (script.entries[i].offset != kNone) entries_.push_back(i);
    }
    SelectRequests(std::min<uint64_t>(anchor, tail.units.size()), n);
    IndexContexts();
  }

  // Returns entry[h]: the entry that request h was, or kNone.
  std::vector<uint32_t> Match(uint64_t anchor) {
    std::vector<uint32_t> entry(std::min<uint64_t>(anchor, tail_.units.size()), kNone);
    if (entries_.empty()) return entry;
    size_t h = requests_.size(), p = entries_.size();  // one past the next pair
    uint64_t tries = 64 * (requests_.size() + 1024);   // bounds the search
    while (h > 0) {
      if (p == 0) p = entries_.size();
      if (Same(h - 1, p - 1)) {
        entry[requests_[--h]] = entries_[--p];
        continue;
      }
      if (!Resume(&h, &p, &tries)) break;
    }
    return entry;
  }

 private:
  static constexpr size_t kNear = 24, kConfirm = 6, kContext = 8;

  // Selects requests that may be the script's. A block that lives longer than the whole cycle is not, whatever its
  // size. (If optimizer state comes in between, lives are longer in requests: permanent blocks do not count.)
  void SelectRequests(uint64_t anchor, uint64_t n) {
    const uint64_t end = tail_.units.size();
    std::vector<uint32_t> staying(end + 1, 0);  // before each request
    auto stays = [&](uint64_t h) { return tail_.ages[h] == kStillLive && end - h > n; };
    for (uint64_t h = 0; h < end; ++h) staying[h + 1] = staying[h] + (stays(h) ? 1 : 0);
    for (uint64_t h = 0; h < anchor; ++h) {
      if (stays(h)) continue;
      const uint64_t released = tail_.ages[h] == kStillLive ? end : std::min(end, h + tail_.ages[h]);
      if (released - h - (staying[released] - staying[h]) <= 2 * n) requests_.push_back(static_cast<uint32_t>(h));
    }
  }

  uint32_t Units(size_t p) const { return script_.entries[entries_[p]].units; }
  bool Same(size_t h, size_t p) const { return tail_.units[requests_[h]] == Units(p); }

  // Returns how many requests before `h` equal the entries before `p`, at most `limit`.
  size_t Agreement(size_t h, size_t p, size_t limit) const {
    size_t length = 0;
    while (length < limit && h > 0) {
      if (p == 0) p = entries_.size();
      if (!Same(--h, --p)) break;
      ++length;
    }
    return length;
  }

  // Finds the nearest position further back where the two agree again: first a few requests or entries off, then any.
  bool Resume(size_t* h, size_t* p, uint64_t* tries) {
    const size_t n = entries_.size();
    for (size_t sum = 1; sum <= kNear; ++sum) {
      for (size_t d = 0; d <= std::min(sum, *h); ++d) {
        const size_t q = (*p + n - (sum - d) % n) % n;
        const size_t least = std::min({kConfirm, *h - d});
        if (least == 0 || Agreement(*h - d, q, least) < least) continue;
        *h -= d;
        *p = q;
        return true;
      }
    }
    for (size_t d = 1; d + kContext <= *h && *tries > 0; ++d) {
      const uint32_t hash = HashBefore(*h - d);
      auto it = std::lower_bound(contexts_.begin(), contexts_.end(), std::make_pair(hash, 0u));
      for (; it != contexts_.end() && it->first == hash && *tries > 0; ++it, --*tries) {
        if (Agreement(*h - d, it->second, 2 * kContext) < std::min(2 * kContext, *h - d)) continue;
        *h -= d;
        *p = it->second;
        return true;
      }
      --*tries;
    }
    return false;
  }

  uint32_t HashBefore(size_t h) const {
    uint32_t window[kContext];
    for (size_t k = 0; k < kContext; ++k) window[k] = tail_.units[requests_[h - kContext + k]];
    return ContextHash(window, kContext);
  }
  void IndexContexts() {
    const size_t n = entries_.size();
    uint32_t window[kContext];
    for (size_t p = 0; p < n; ++p) {
      for (size_t k = 0; k < kContext; ++k) window[k] = Units((p + n * kContext - kContext + k) % n);
      contexts_.emplace_back(ContextHash(window, kContext), static_cast<uint32_t>(p));
    }
    std::sort(contexts_.begin(), contexts_.end());
  }

  const HistoryTail& tail_;
  const Script& script_;
  std::vector<uint32_t> entries_;                        // planned ones
  std::vector<uint32_t> requests_;                       // not retained, before the anchor
  std::vector<std::pair<uint32_t, uint32_t>> contexts_;  // (hash of kContext entries, index of the next one)
};

// Returns one past the last request, of those before `entries.size()`, that is not the next planned entry after its
// predecessor.
size_t LastIrregular(const std::vector<uint32_t>& entries, const Script& script) {
  const uint32_t n = script.size();
  uint32_t expected = 0;  // the entry expected at the anchor
  for (size_t h = entries.size(); h-- > 0;) {
    const uint32_t before = expected == 0 ? n - 1 : expected - 1;
    if (script.entries[before].offset == kNone && entries[h] == kNone) {
      expected = before;  // dynamic by the script
      continue;
    }
    if (entries[h] != before) return h + 1;
    expected = before;
  }
  return 0;
}

// Returns where the requests first equal a whole cycle without a permanent block; kNoAnchor if nowhere. O(requests +
// entries) (Knuth, Morris, Pratt).
uint64_t FirstCycle(const HistoryTail& tail, const Script& script) {
  const uint32_t n = script.size();
  std::vector<uint32_t> border(n, 0);  // of entries [0, i]: the longest proper prefix that is also a suffix
  uint32_t length = 0;
  const auto extend = [&](uint32_t units) {
    while (length > 0 && script.entries[length].units != units) length = border[length - 1];
    if (script.entries[length].units == units) ++length;
  };
  for (uint32_t i = 1; i < n; ++i) {
    extend(script.entries[i].units);
    border[i] = length;
  }
  length = 0;
  for (uint64_t h = 0; h < tail.units.size(); ++h) {
    const bool stays = tail.ages[h] == kStillLive && tail.units.size() - h > n;
    extend(stays ? 0 : tail.units[h]);
    if (length == n) return h + 1 - n;
  }
  return kNoAnchor;
}

}  // namespace

Opening FindOpening(const HistoryTail& tail, const Script& script, uint64_t anchor) {
  Opening opening;
  const uint64_t n = script.size(), known = tail.units.size();
  if (tail.first != 0 || n == 0) return opening;
  // If the anchor is far away, many requests in between are not the script's. (Periods that differ only in their
  // blocks' lives cannot be distinguished by requests.)
  constexpr uint64_t kFar = 8;  // cycles
  if (script.profile.unroll == 1) {
    const uint64_t first = FirstCycle(tail, script);
    if (first != kNoAnchor && anchor > first + kFar * n) anchor = first;
  }
  if (anchor == kNoAnchor) return opening;
  while (anchor > known) {
    if (anchor < n) return opening;
    anchor -= n;
  }
  std::vector<uint32_t> entries = Alignment(tail, script, anchor).Match(anchor);
  const auto first = std::find_if(entries.begin(), entries.end(), [](uint32_t entry) { return entry != kNone; });
  opening.before = static_cast<uint64_t>(first - entries.begin());
  if (first != entries.end()) entries.resize(std::max<size_t>(LastIrregular(entries, script), opening.before));
  // Adds a cycle of the following requests, in the script's own order, to be sure that it is this script.
  const uint64_t most = std::min(kMaxOpening, opening.before + 4 * n + 4096);  // later the follower knows better
  const uint64_t end = std::min({entries.size() + n, known, most});
  for (uint64_t h = entries.size(); h < end; ++h) {
    const uint64_t entry = h >= anchor ? (h - anchor) % n : (n - (anchor - h) % n) % n;
    if (tail.units[h] != script.entries[entry].units) break;
    entries.push_back(script.entries[entry].offset != kNone ? static_cast<uint32_t>(entry) : kNone);
  }
  entries.resize(std::min<size_t>(entries.size(), most));
  while (!entries.empty() && entries.back() == kNone) entries.pop_back();
  if (opening.before >= entries.size()) return opening;
  while (entries[opening.before] == kNone) ++opening.before;
  opening.units.assign(tail.units.begin(), tail.units.begin() + static_cast<ptrdiff_t>(entries.size()));
  opening.entries = std::move(entries);
  return opening;
}

namespace {

// Puts the fragments one above the other, over the zone.
std::vector<Offset> Flatten(const Script& script, const std::vector<uint32_t>& index) {
  std::vector<uint64_t> base;
  uint64_t top = script.height_bytes / kBlockUnit;
  for (const Fragment& fragment : script.fragments) {
    base.push_back(top);
    top += fragment.units;
  }
  std::vector<Offset> offsets;
  for (uint32_t i : index) {
    const uint32_t offset = script.entries[i].offset;
    uint64_t units = offset - script.zone_offset;
    if (offset < script.zone_offset) {
      auto fragment = std::upper_bound(script.fragments.begin(), script.fragments.end(), offset,
                                       [](uint32_t at, const Fragment& h) { return at < h.offset; }) -
                      1;
      units = base[static_cast<size_t>(fragment - script.fragments.begin())] + offset - fragment->offset;
    }
    offsets.push_back(static_cast<Offset>(units * kBlockUnit));
  }
  return offsets;
}

}  // namespace

bool IsAligned(const SavedPlan& plan, uint64_t large_alignment) {
  return std::all_of(plan.scripts.begin(), plan.scripts.end(), [large_alignment](const auto& script) {
    return std::all_of(script->entries.begin(), script->entries.end(), [large_alignment](const ScriptEntry& entry) {
      const bool large = entry.offset != kNone && entry.units * kBlockUnit >= kLargeBlock;
      return !large || entry.offset * kBlockUnit % large_alignment == 0;
    });
  });
}

std::shared_ptr<const Script> WithoutFragments(const std::shared_ptr<const Script>& script, int64_t time_limit_ns,
                                               uint64_t large_alignment) {
  if (script->fragments.empty() && script->zone_offset == 0) return script;
  std::vector<uint32_t> index;
  Instance instance = ToInstance(script->profile, &index);
  AlignLarge(large_alignment, &instance);
  Placement start;
  start.offsets = Flatten(*script, index);
  PackOptions options;
  options.time_limit_ns = time_limit_ns;
  options.start = &start;
  PackResult packed = Pack(instance, options);
  if (packed.status != PackStatus::kOk) return nullptr;
  return std::make_shared<const Script>(
      CompileScript(script->profile, index, packed.placement.offsets, {}, 0, packed.lower_bound));
}

}  // namespace hotpack
