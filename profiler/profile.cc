#include "profiler/profile.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "profiler/recorded_streams.h"

namespace hotpack {
namespace {

constexpr uint64_t kOccurrences = 2 * kMaxUnroll;  // periods examined

// Returns how often blocks of the same position lived differently `distance` periods apart, weighted by size.
uint64_t AgeMismatch(const HistoryTail& tail, uint64_t period, uint64_t occurrences, uint64_t distance) {
  uint64_t n = tail.units.size();
  uint64_t mismatch = 0, compared = 0;
  for (uint64_t back = period; back + distance * period < occurrences * period; ++back) {
    uint64_t i = n - 1 - back, j = i - distance * period;
    ++compared;
    if (tail.ages[i] != tail.ages[j] && tail.ages[i] != kStillLive) mismatch += tail.units[i];
  }
  return compared == 0 ? UINT64_MAX : mismatch * 1000 / compared;
}

// Returns the smallest m for which lives repeat every m periods of equal requests (micro-batches that accumulate).
uint64_t LifePeriod(const HistoryTail& tail, uint64_t period, uint64_t occurrences) {
  uint64_t best = 1, least = AgeMismatch(tail, period, occurrences, 1);
  if (least == 0 || least == UINT64_MAX) return 1;
  uint64_t enough = least / 16;  // the rest are a few that vary anyway: a longer cycle is not worth it
  for (uint64_t m = 2; m <= kMaxUnroll && 2 * m <= occurrences && least > enough; ++m) {
    uint64_t mismatch = AgeMismatch(tail, period, occurrences, m);
    if (mismatch == UINT64_MAX) break;
    if (mismatch * 2 < least) {
      best = m;
      least = mismatch;
    }
  }
  return best;
}

// Determines the life of one position from its occurrences: the newest at index `newest`, the others `step` apart.
ProfileBlock Observe(const HistoryTail& tail, uint64_t newest, uint64_t step, uint64_t occurrences, uint64_t longest) {
  ProfileBlock block;
  block.units = tail.units[newest];
  block.stream = tail.StreamOf(newest);
  uint64_t n = tail.units.size();
  uint64_t oldest_live = 0;   // the longest life so far among those not released
  uint64_t earlier_live = 0;  // the same, of those before any that was seen released
  for (uint64_t k = 0; k < occurrences && k * step <= newest; ++k) {
    uint64_t i = newest - k * step;
    uint32_t age = tail.ages[i];
    if (age == kStillLive) {
      earlier_live = std::max(earlier_live, n - i);
    } else {
      oldest_live = std::max(oldest_live, earlier_live);
      block.age = std::max(block.age, age);
      block.min_age = block.min_age == 0 ? age : std::min(block.min_age, age);
    }
  }
  // A block that is not released, although others of its position were long ago, may be permanent. The fate of the
  // first of them (a momentum buffer is the first gradient) says nothing about later ones.
  bool lingers = oldest_live > step && oldest_live > block.age;
  block.planned = block.age > 0 && block.age <= longest && !lingers;
  if (!block.planned) block.age = block.min_age = 0;
  return block;
}

// Returns by b the planned units live at the boundary just before request b.
std::vector<uint64_t> CarriedUnits(const Profile& profile) {
  uint64_t n = profile.blocks.size();
  std::vector<int64_t> change(2 * n + 1, 0);
  for (uint64_t i = 0; i < n; ++i) {
    const ProfileBlock& block = profile.blocks[i];
    if (!block.planned || block.age <= 1) continue;
    change[i + 1] += block.units;  // boundaries i+1 .. i+age-1
    change[i + block.age] -= block.units;
  }
  std::vector<uint64_t> carried(n, 0);
  int64_t sum = 0;
  for (uint64_t t = 0; t < 2 * n; ++t) {
    sum += change[t];
    carried[t % n] += static_cast<uint64_t>(sum);
  }
  return carried;
}

}  // namespace

Profile BuildProfile(const HistoryTail& tail, const Period& period) {
  uint64_t n = tail.units.size();
  Profile profile;
  profile.period = static_cast<uint32_t>(period.length);
  uint64_t occurrences = std::min<uint64_t>((period.run + period.length) / period.length, kOccurrences);
  uint64_t life = LifePeriod(tail, period.length, occurrences);
  uint64_t step = life * period.length;
  uint64_t rounds = std::max<uint64_t>(1, occurrences / life);
  // In a loop of a few requests that has run for long, takes as many rounds as make a cycle worth its end. Blocks that
  // live through some of these rounds get a place, too.
  const uint64_t least = period.run >= 2 * kMinCycle ? kMinCycle : 0;
  std::vector<ProfileBlock> once(step);
  uint64_t longest = std::max<uint64_t>(1, least / step * step);
  for (uint64_t i = 0; i < step; ++i) {
    once[i] = Observe(tail, n - step + i, step, rounds, std::max(kMaxUnroll * period.length, least));
    longest = std::max<uint64_t>(longest, once[i].age);
  }
  uint64_t copies = (longest + step - 1) / step;
  profile.unroll = static_cast<uint32_t>(life * copies);
  for (uint64_t c = 0; c < copies; ++c) profile.blocks.insert(profile.blocks.end(), once.begin(), once.end());
  profile.first_ordinal = tail.end() - step;
  profile.seen_from = tail.end() - std::min<uint64_t>(n, period.run + period.length);
  Rotate(&profile);
  return profile;
}

namespace {

// Returns where the cycle carries least. Of several such places, it is the one after the highest load since the
// previous one; of several again, the first. Between an iteration's end and the next one's beginning there may be many
// (the optimizer's temporary blocks). This choice does not depend on the request with which the profile happens to
// begin, and FindShapes() cuts at the same place.
size_t LeastAfterMost(const std::vector<uint64_t>& carried) {
  const size_t n = carried.size();
  const size_t first = static_cast<size_t>(std::min_element(carried.begin(), carried.end()) - carried.begin());
  const uint64_t least = carried[first];
  size_t best = first;
  uint64_t highest = 0, most = 0;
  for (size_t k = 1; k <= n; ++k) {
    const size_t i = first + k < n ? first + k : first + k - n;
    most = std::max(most, carried[i]);
    if (carried[i] != least) continue;
    if (most > highest || (most == highest && i < best)) {
      highest = most;
      best = i;
    }
    most = 0;
  }
  return best;
}

}  // namespace

void Rotate(Profile* profile) {
  std::vector<uint64_t> carried = CarriedUnits(*profile);
  if (carried.empty()) return;
  const auto start = static_cast<ptrdiff_t>(LeastAfterMost(carried));
  std::rotate(profile->blocks.begin(), profile->blocks.begin() + start, profile->blocks.end());
  profile->first_ordinal += static_cast<uint64_t>(start);
  profile->carried_units = carried[static_cast<size_t>(start)];
  profile->carried_blocks = 0;
  uint64_t n = profile->blocks.size();
  for (uint64_t i = 0; i < n; ++i) {
    if (profile->blocks[i].planned && i + profile->blocks[i].age > n) ++profile->carried_blocks;
  }
}

std::vector<uint64_t> LoadUnits(const Profile& profile) {
  uint64_t n = profile.blocks.size();
  std::vector<int64_t> change(2 * n + 1, 0);
  for (uint64_t i = 0; i < n; ++i) {
    const ProfileBlock& block = profile.blocks[i];
    if (!block.planned) continue;
    change[i] += block.units;
    change[i + block.age] -= block.units;
  }
  std::vector<uint64_t> load(n, 0);
  int64_t sum = 0;
  for (uint64_t t = 0; t < 2 * n; ++t) {  // a carried block is also resident at the cycle's beginning
    sum += change[t];
    load[t % n] += static_cast<uint64_t>(sum);
  }
  return load;
}

uint64_t PeakUnits(const Profile& profile) {
  const std::vector<uint64_t> load = LoadUnits(profile);
  return load.empty() ? 0 : *std::max_element(load.begin(), load.end());
}

bool WidenForJitter(Profile* profile, uint64_t max_units) {
  uint64_t n = profile->blocks.size();
  struct Range {
    uint64_t first, last;  // earliest and latest release seen
    uint32_t block;
  };
  std::vector<Range> ranges;
  for (uint32_t i = 0; i < n; ++i) {
    const ProfileBlock& block = profile->blocks[i];
    if (block.planned && block.min_age < block.age) ranges.push_back({i + block.min_age, i + uint64_t{block.age}, i});
  }
  if (ranges.empty()) return false;
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  Profile wide = *profile;
  for (size_t begin = 0; begin < ranges.size();) {
    uint64_t last = ranges[begin].last;
    size_t end = begin + 1;
    while (end < ranges.size() && ranges[end].first <= last) last = std::max(last, ranges[end++].last);
    for (; begin < end; ++begin) {
      uint32_t i = ranges[begin].block;
      wide.blocks[i].age = static_cast<uint32_t>(std::min<uint64_t>(last - i, n));
    }
  }
  if (PeakUnits(wide) > max_units) return false;
  *profile = std::move(wide);
  return true;
}

uint32_t CommonHead(const Profile& a, const Profile& b) {
  size_t n = std::min(a.blocks.size(), b.blocks.size());
  size_t k = 0;
  while (k < n && a.blocks[k].units == b.blocks[k].units) ++k;
  return static_cast<uint32_t>(k);
}

CommonStretch CommonOpening(const Profile& a, const Profile& b) {
  constexpr size_t kFew = 8;  // requests
  CommonStretch best;
  for (size_t skip = 0; skip <= 2 * kFew; ++skip) {
    for (size_t i = skip - std::min(skip, kFew); i <= std::min(skip, kFew); ++i) {
      const size_t j = skip - i;
      size_t k = 0;
      while (i + k < a.blocks.size() && j + k < b.blocks.size() && a.blocks[i + k].units == b.blocks[j + k].units) ++k;
      if (k > best.length) best = {static_cast<uint32_t>(i), static_cast<uint32_t>(j), static_cast<uint32_t>(k)};
    }
  }
  return best;
}

uint32_t CommonTail(const Profile& a, const Profile& b) {
  size_t n = std::min(a.blocks.size(), b.blocks.size());
  size_t k = 0;
  while (k < n && a.blocks[a.blocks.size() - 1 - k].units == b.blocks[b.blocks.size() - 1 - k].units) ++k;
  return static_cast<uint32_t>(k);
}

namespace {

// Returns whether `longer`, read as a cycle from request `start` on, equals `shorter` except for one stretch of at most
// `differ` requests.
bool SameButForOneStretch(const std::vector<ProfileBlock>& longer, const std::vector<ProfileBlock>& shorter,
                          size_t start, size_t differ) {
  const size_t n = longer.size(), m = shorter.size();
  auto at = [&](size_t i) { return longer[start + i < n ? start + i : start + i - n].units; };
  size_t head = 0, tail = 0;
  while (head < m && at(head) == shorter[head].units) ++head;
  while (tail < m - head && at(n - 1 - tail) == shorter[m - 1 - tail].units) ++tail;
  return head + tail + differ >= n;
}

// Returns whether `longer` repeats the cycle of `shorter`, from any beginning, except for one request in fifty.
bool Repeats(const std::vector<ProfileBlock>& longer, const std::vector<ProfileBlock>& shorter) {
  const size_t n = longer.size(), m = shorter.size();
  for (size_t start = 0; start < m; ++start) {
    size_t changed = 0;
    for (size_t i = 0, k = start; i < n && changed * 50 <= n; ++i, k = k + 1 == m ? 0 : k + 1) {
      changed += longer[i].units != shorter[k].units;
      if (i < 8 && changed > 0) changed = n;  // hardly a chance: saves time
    }
    if (changed * 50 <= n) return true;
  }
  return false;
}

}  // namespace

bool AlikeCycles(const Profile& a, const Profile& b) {
  const auto& longer = a.blocks.size() >= b.blocks.size() ? a.blocks : b.blocks;
  const auto& shorter = a.blocks.size() >= b.blocks.size() ? b.blocks : a.blocks;
  const size_t n = longer.size(), m = shorter.size(), differ = std::max<size_t>(2, n / 50);
  if (m == 0) return false;
  if (n - m > differ) return Repeats(longer, shorter);
  if (n == m) {
    size_t changed = 0;
    for (size_t i = 0; i < n; ++i) changed += longer[i].units != shorter[i].units;
    if (changed <= differ) return true;
  }
  if (SameButForOneStretch(longer, shorter, 0, differ)) return true;
  // Other beginnings: where the first requests of the shorter one are found.
  constexpr size_t kFirst = 16;
  constexpr int kTries = 8;
  const size_t first = std::min(m, kFirst);
  int tries = 0;
  for (size_t start = 1; start < n && tries < kTries; ++start) {
    size_t k = 0;
    while (k < first && longer[start + k < n ? start + k : start + k - n].units == shorter[k].units) ++k;
    if (k < first) continue;
    ++tries;
    if (SameButForOneStretch(longer, shorter, start, differ)) return true;
  }
  return false;
}

Instance ToInstance(const Profile& profile, std::vector<uint32_t>* index) {
  Instance instance;
  index->clear();
  auto n = static_cast<Clock>(profile.blocks.size());
  for (uint32_t i = 0; i < profile.blocks.size(); ++i) {
    const ProfileBlock& from = profile.blocks[i];
    if (!from.planned) continue;
    Block block;
    block.size = static_cast<Bytes>(from.units * kBlockUnit);
    block.alignment = kBlockUnit;
    Clock begin = i, end = begin + from.age;
    if (end > n) block.residency.push_back({0, end - n});
    if (end > n && end - n >= begin) {
      block.residency[0].end = n;  // it fills the whole cycle
    } else {
      block.residency.push_back({begin, std::min(end, n)});
    }
    instance.blocks.push_back(block);
    index->push_back(i);
  }
  return instance;
}

void Feed(const Trace& trace, History* history, std::vector<uint64_t>* marks) {
  std::unordered_map<uint64_t, uint64_t> live;  // block id → ordinal
  int interrupted = 0;
  const std::vector<uint16_t> streams = RecordedStreams(trace);
  size_t request = 0;
  for (const Event& event : trace.events) {
    switch (event.kind) {
      case EventKind::kAllocate: {
        const uint16_t stream = streams[request++];
        if (interrupted > 0) break;
        const uint64_t ordinal = live[event.id] = history->Append(UnitsOf(event.bytes));
        history->NoteStream(ordinal, stream);
        break;
      }
      case EventKind::kRelease:
        if (auto it = live.find(event.id); it != live.end()) {
          history->Released(it->second);
          live.erase(it);
        }
        break;
      case EventKind::kMark:
        if (marks != nullptr) marks->push_back(history->Count());
        break;
      case EventKind::kInterrupt:
        ++interrupted;
        break;
      case EventKind::kResume:
        if (interrupted > 0) --interrupted;
        break;
      case EventKind::kExpect:
        break;
    }
  }
}

}  // namespace hotpack
