// The hot iteration: its requests in order, the life of each block, and the best beginning of the iteration.
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
  bool planned = false;  // false: retained, or not released often enough to decide; served dynamically
  uint16_t stream = 0;   // the stream that its last request named: its small ordinal, from 1; 0: none, or not known
};

// One iteration, as a cycle: the first request follows the last one. The block of request i is resident during the
// requests i, i+1, ..., i+age-1 (modulo the length). No planned age exceeds the length.
struct Profile {
  std::vector<ProfileBlock> blocks;  // in the order of the requests
  uint64_t first_ordinal = 0;        // an occurrence of blocks[0] in the run's count of requests
  uint64_t seen_from = 0;            // the request of the run at which the repetition begins
  uint32_t period = 0;               // requests of one iteration; blocks.size() == period * unroll
  uint32_t unroll = 1;               // consecutive iterations planned as one (blocks that outlive a period; kMinCycle)
  uint32_t carried_blocks = 0;       // planned blocks that are live at the cycle's beginning
  uint64_t carried_units = 0;
};

inline constexpr uint32_t kMaxUnroll = 8;  // a block not released within this many periods is retained
// Requests. A shorter period that has repeated for twice as many is unrolled to about that length. The cycle then ends
// less often. Several threads that go through it find places next to blocks that one of them holds for long.
inline constexpr uint32_t kMinCycle = 64;

// Builds the profile of the iteration that `period` describes at the end of `tail`. Ages are the largest of the last
// occurrences. The cycle begins where it carries the fewest bytes. O(period × occurrences), at most 16 of them, or
// O(kMinCycle).
Profile BuildProfile(const HistoryTail& tail, const Period& period);

// Rotates the cycle so that it begins where it carries the fewest bytes; of several such places, after the highest
// load. Counts the carried blocks. O(n).
void Rotate(Profile* profile);

// Allows releases that permute from iteration to iteration. Considers blocks whose shortest and longest lives differ.
// Those whose ranges of release overlap form a group and get the group's latest release. So the plan holds for every
// permutation, seen or not. Applied only if the load, PeakUnits(), stays within `max_units`. Returns whether it was
// applied.
bool WidenForJitter(Profile* profile, uint64_t max_units);

// Returns the sum of resident planned units at each request of the cycle; PeakUnits the largest of them. O(n).
std::vector<uint64_t> LoadUnits(const Profile& profile);
uint64_t PeakUnits(const Profile& profile);

// Returns how many requests, from the first on, the two have in common. O(n).
uint32_t CommonHead(const Profile& a, const Profile& b);
uint32_t CommonTail(const Profile& a, const Profile& b);  // up to the last

// Requests [a, a + length) of one cycle that equal those of another from its request b on.
struct CommonStretch {
  uint32_t a = 0, b = 0, length = 0;
};
// Returns the longest such stretch that begins among the first few requests of both: the first requests often depend on
// a batch's length. Of several, the earliest. Usually O(n).
CommonStretch CommonOpening(const Profile& a, const Profile& b);
// Returns whether a script of one cycle serves the other well enough. Their requests must be the same except for a few,
// at most one in fifty (but two are always allowed), that differ in size or are inserted in one place. One may also be
// a repetition of the other, shorter one. The cycles may begin at different places. Usually O(n).
bool AlikeCycles(const Profile& a, const Profile& b);

// Converts a profile into the packer's input. Sizes in bytes; instance block i belongs to profile block (*index)[i];
// the clock is λ.
Instance ToInstance(const Profile& profile, std::vector<uint32_t>* index);

// Feeds the requests with their streams (profiler/recorded_streams.h) and the releases of a recording into a history,
// except those between interrupt and resume. `marks`: ordinals of the first request after each mark.
void Feed(const Trace& trace, History* history, std::vector<uint64_t>* marks);

}  // namespace hotpack
