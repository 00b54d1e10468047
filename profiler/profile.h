// The hot iteration: its requests in order, how long each block lives, where the iteration is best begun.
#pragma once

#include <cstdint>
#include <vector>

#include "packer/types.h"
#include "profiler/event.h"
#include "profiler/history.h"
#include "profiler/period.h"

namespace hotpack {

struct ProfileBlock {
  uint32_t units = 0;    // size in units of 512 bytes
  uint32_t age = 0;      // longest life seen, in requests (history.h); 0 if not planned
  uint32_t min_age = 0;  // shortest life seen; 0 if not planned
  bool planned = false;  // false: retained, or not released often enough to say; served dynamically
};

// One iteration, as a cycle: after the last request comes the first one again. The block of request i is resident
// while the requests i, i+1, ..., i+age-1 (modulo the length) are made; no planned age exceeds the length.
struct Profile {
  std::vector<ProfileBlock> blocks;  // in the order of the requests
  uint64_t first_ordinal = 0;        // an occurrence of blocks[0] in the run's count of requests
  uint64_t seen_from = 0;            // where in the run's count of requests the repetition begins
  uint32_t period = 0;               // requests of one iteration; blocks.size() == period * unroll
  uint32_t unroll = 1;          // iterations in a row that are planned as one (blocks that outlive a period; kMinCycle)
  uint32_t carried_blocks = 0;  // planned blocks that are live where the cycle begins
  uint64_t carried_units = 0;
};

inline constexpr uint32_t kMaxUnroll = 8;  // a block not released within this many periods is retained
// Requests. A shorter period that has gone on for twice as many is unrolled to about that: it ends less often, and
// several threads that go round it find places beside those that one of them holds for long.
inline constexpr uint32_t kMinCycle = 64;

// The profile of the iteration that `period` names at the end of `tail`. Ages are the largest seen in the last
// occurrences; the rotation is the one that carries the fewest bytes. O(period × occurrences), at most 16 of them, or
// O(kMinCycle).
Profile BuildProfile(const HistoryTail& tail, const Period& period);

// Turns the cycle so that it begins where it carries the fewest bytes (of several such places, the one after the
// highest load) and counts what is carried. O(n).
void Rotate(Profile* profile);

// Releases that permute from iteration to iteration: blocks whose shortest and longest lives differ and whose ranges of
// release meet are given the latest release of their group, so that the plan holds for every permutation seen or not.
// Done only if the load, PeakUnits(), becomes no more than `max_units`; returns whether it was.
bool WidenForJitter(Profile* profile, uint64_t max_units);

// Sum of resident planned units at each request of the cycle, and the largest of them. O(n).
std::vector<uint64_t> LoadUnits(const Profile& profile);
uint64_t PeakUnits(const Profile& profile);

// How many requests, from the first on, the two have in common. O(n).
uint32_t CommonHead(const Profile& a, const Profile& b);
uint32_t CommonTail(const Profile& a, const Profile& b);  // up to the last

// Requests [a, a + length) of one cycle that are those of another from its request b on.
struct CommonStretch {
  uint32_t a = 0, b = 0, length = 0;
};
// The longest one that begins among the first few requests of both: what a batch begins with often has its length. The
// earliest of several. O(n) as a rule.
CommonStretch CommonOpening(const Profile& a, const Profile& b);
// Whether a script of the one serves the other well enough: the same requests but for a few, one in fifty at most, that
// have other sizes or come in one place, or the shorter one again and again; begun at any place of the cycle. O(n) as a
// rule.
bool AlikeCycles(const Profile& a, const Profile& b);

// What the packer is given. Sizes in bytes; instance block i belongs to profile block (*index)[i]; clock: λ.
Instance ToInstance(const Profile& profile, std::vector<uint32_t>* index);

// Feeds the requests and releases of a recording into a history, without those between interrupt and resume.
// marks: ordinals of the first request after each mark.
void Feed(const Trace& trace, History* history, std::vector<uint64_t>* marks);

}  // namespace hotpack
