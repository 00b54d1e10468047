#include "profiler/shapes.h"

#include <algorithm>
#include <unordered_map>

namespace hotpack {
namespace {

constexpr uint64_t kMinRequests = 8;  // of a piece: shorter ones are not worth a script
constexpr uint64_t kOccurrencesSeen = 16;

// Returns by t the units live just before request t, of blocks that are released within half the tail. A block still
// live is omitted if it is older than any of those became.
std::vector<uint64_t> Levels(const HistoryTail& tail) {
  uint64_t n = tail.units.size();
  uint64_t longest = 1;
  for (uint64_t i = 0; i < n; ++i) {
    if (tail.ages[i] != kStillLive && tail.ages[i] <= n / 2) longest = std::max<uint64_t>(longest, tail.ages[i]);
  }
  std::vector<int64_t> change(n + 2, 0);
  for (uint64_t i = 0; i < n; ++i) {
    bool live = tail.ages[i] == kStillLive;
    uint64_t age = live ? n - i + 1 : tail.ages[i];
    if (age > (live ? longest : n / 2)) continue;
    change[i + 1] += tail.units[i];
    change[std::min(i + age, n + 1)] -= tail.units[i];
  }
  std::vector<uint64_t> level(n + 1, 0);
  int64_t sum = 0;
  for (uint64_t t = 0; t <= n; ++t) {
    sum += change[t];
    level[t] = static_cast<uint64_t>(sum);
  }
  return level;
}

// Returns the first lowest place of each valley. The valley at the history's end may continue.
std::vector<uint64_t> Cuts(const std::vector<uint64_t>& level) {
  uint64_t n = level.size();
  // Blocks requested before the tail began are invisible: the lowest level is that of the later half.
  uint64_t low = *std::min_element(level.begin() + static_cast<ptrdiff_t>(n / 2), level.end());
  uint64_t high = *std::max_element(level.begin(), level.end());
  uint64_t line = low + (high - low) / 16;
  std::vector<uint64_t> cuts;
  for (uint64_t t = 0; t < n;) {
    if (level[t] > line) {
      ++t;
      continue;
    }
    uint64_t best = t;
    for (; t < n && level[t] <= line; ++t) {
      if (level[t] < level[best]) best = t;
    }
    if (t < n) cuts.push_back(best);
  }
  return cuts;
}

// The pieces of a history, in order: piece k is [cuts[k], cuts[k + 1]). Equal pieces have the same letter.
struct Pieces {
  std::vector<uint64_t> cuts;
  std::vector<uint32_t> letters;  // one less than cuts
  uint32_t kinds = 0;
};

Pieces Spell(const HistoryTail& tail, std::vector<uint64_t> cuts) {
  Pieces pieces;
  std::unordered_multimap<uint64_t, size_t> by_hash;  // to the first piece of that letter
  for (size_t k = 0; k + 1 < cuts.size(); ++k) {
    uint64_t length = cuts[k + 1] - cuts[k], hash = length;
    auto first = tail.units.begin() + static_cast<ptrdiff_t>(cuts[k]), last = first + static_cast<ptrdiff_t>(length);
    for (auto it = first; it != last; ++it) hash = (hash ^ *it) * 0x9E3779B97F4A7C15u;
    auto [same, end] = by_hash.equal_range(hash);
    while (same != end) {
      size_t other = same->second;
      if (cuts[other + 1] - cuts[other] == length &&
          std::equal(first, last, tail.units.begin() + static_cast<ptrdiff_t>(cuts[other]))) {
        break;
      }
      ++same;
    }
    if (same == end) by_hash.emplace(hash, k);
    pieces.letters.push_back(same == end ? pieces.kinds++ : pieces.letters[same->second]);
  }
  pieces.cuts = std::move(cuts);
  return pieces;
}

// Returns the cuts that separate shapes. Omits cuts between two pieces that only follow each other (the layers of an
// evaluation, one by one).
std::vector<uint64_t> CutsThatPart(const Pieces& pieces) {
  constexpr uint32_t kUnknown = UINT32_MAX, kSeveral = UINT32_MAX - 1;
  std::vector<uint32_t> next(pieces.kinds, kUnknown), before(pieces.kinds, kUnknown);
  auto note = [](uint32_t* known, uint32_t letter) {
    if (*known != letter) *known = *known == kUnknown ? letter : kSeveral;
  };
  const std::vector<uint32_t>& letters = pieces.letters;
  for (size_t k = 1; k < letters.size(); ++k) {
    note(&next[letters[k - 1]], letters[k]);
    note(&before[letters[k]], letters[k - 1]);
  }
  std::vector<uint64_t> cuts;
  for (size_t k = 0; k < pieces.cuts.size(); ++k) {
    bool inner = k > 0 && k < letters.size();
    if (inner && letters[k - 1] != letters[k] && next[letters[k - 1]] == letters[k] &&
        before[letters[k]] == letters[k - 1]) {
      continue;
    }
    cuts.push_back(pieces.cuts[k]);
  }
  return cuts;
}

// Joins pieces that are too short to be distinguished with a neighbour: of the two cuts, the one where less is live
// stays.
void JoinShort(const std::vector<uint64_t>& level, std::vector<uint64_t>* cuts) {
  std::vector<uint64_t> joined;
  for (uint64_t cut : *cuts) {
    if (joined.empty() || cut - joined.back() >= kMinRequests) {
      joined.push_back(cut);
    } else if (level[cut] < level[joined.back()]) {
      joined.back() = cut;
    }
  }
  cuts->swap(joined);
}

}  // namespace

std::vector<uint64_t> PieceBounds(const HistoryTail& tail) {
  if (tail.units.size() < 2 * kMinRequests) return {};
  std::vector<uint64_t> level = Levels(tail), cuts = Cuts(level);
  JoinShort(level, &cuts);
  return cuts;
}

std::vector<Shape> FindShapes(const HistoryTail& tail) {
  if (tail.units.size() < 2 * kMinRequests) return {};
  Pieces pieces = Spell(tail, PieceBounds(tail));
  pieces = Spell(tail, CutsThatPart(pieces));
  std::vector<Shape> shapes(pieces.kinds);
  for (size_t k = 0; k < pieces.letters.size(); ++k) {
    Shape& shape = shapes[pieces.letters[k]];
    shape.begins.push_back(pieces.cuts[k]);
    shape.length = pieces.cuts[k + 1] - pieces.cuts[k];
  }
  std::erase_if(shapes, [](const Shape& shape) { return shape.begins.size() < 2 || shape.length < kMinRequests; });
  std::stable_sort(shapes.begin(), shapes.end(), [](const Shape& a, const Shape& b) {
    return a.length * a.begins.size() > b.length * b.begins.size();
  });
  return shapes;
}

namespace {

// The piece before the one that begins at `begin` may be another one with the same end (a step, before a step that
// follows an evaluation). Blocks that it carries over lie at the places of this shape's own (plan_builder.h:
// RelatedScripts::sibling). So each place is kept for the longer of the two lives.
void CountCarriedIn(const HistoryTail& tail, uint64_t begin, Profile* profile) {
  const uint64_t n = profile->blocks.size();
  for (uint64_t back = 1; back <= std::min(n, begin); ++back) {
    ProfileBlock& block = profile->blocks[n - back];
    if (tail.units[begin - back] != block.units) return;
    const uint64_t age = tail.ages[begin - back];
    if (!block.planned || age == kStillLive || age <= back) continue;
    block.age = std::max(block.age, static_cast<uint32_t>(std::min(age, n)));
  }
}

}  // namespace

Profile BuildShapeProfile(const HistoryTail& tail, const Shape& shape) {
  uint64_t n = shape.length;
  Profile profile;
  profile.period = static_cast<uint32_t>(n);
  profile.first_ordinal = tail.first + shape.begins.back();
  profile.seen_from = tail.first + shape.begins.front();
  profile.blocks.resize(n);
  size_t oldest = shape.begins.size() - std::min<size_t>(shape.begins.size(), kOccurrencesSeen);
  for (uint64_t i = 0; i < n; ++i) {
    ProfileBlock& block = profile.blocks[i];
    block.units = tail.units[shape.begins[0] + i];
    block.stream = tail.StreamOf(shape.begins.back() + i);
    bool stays = false;
    for (size_t k = oldest; k < shape.begins.size(); ++k) {
      uint64_t at = shape.begins[k] + i;
      uint64_t age = tail.ages[at];
      if (age == kStillLive) {  // of the newest occurrence it may still be released
        stays |= tail.units.size() - at > kMaxUnroll * n;
        continue;
      }
      stays |= age > kMaxUnroll * n;
      age = std::min(age, n);  // then it has its place for itself
      block.age = std::max(block.age, static_cast<uint32_t>(age));
      block.min_age = block.min_age == 0 ? block.age : std::min(block.min_age, static_cast<uint32_t>(age));
    }
    block.planned = block.age > 0 && !stays;
    if (!block.planned) block.age = block.min_age = 0;
  }
  for (size_t k = oldest; k < shape.begins.size(); ++k) CountCarriedIn(tail, shape.begins[k], &profile);
  for (uint64_t i = 0; i < n; ++i) {
    const ProfileBlock& block = profile.blocks[i];
    if (!block.planned || i + block.age <= n) continue;
    ++profile.carried_blocks;
    profile.carried_units += block.units;
  }
  return profile;
}

}  // namespace hotpack
