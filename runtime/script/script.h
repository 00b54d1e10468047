// The requests of one hot iteration in order, each with its place: the engine follows it. Immutable once compiled.
#pragma once

#include <cstdint>
#include <vector>

#include "packer/types.h"
#include "profiler/profile.h"
#include "runtime/script/load_columns.h"

namespace hotpack {

inline constexpr uint32_t kNone = UINT32_MAX;

struct ScriptEntry {
  uint32_t units = 0;            // planned size, in units of 512 bytes
  uint32_t age = 0;              // expected life, in requests; 0: not planned
  uint32_t offset = kNone;       // in units, in the script's own space (Script::fragments); kNone: not planned
  uint32_t first_successor = 0;  // into Script::successors, up to the next entry's
  uint32_t predecessors = 0;     // number of spatial predecessors
};

// Memory outside the planned zone that is held anyway, next to retained blocks (Arena::Fragments).
struct Fragment {
  uint32_t offset;  // in the script's own space, in units
  uint32_t units;
  uint64_t address;  // of the device
  bool operator==(const Fragment&) const = default;
};

// A range of the planned zone, in units from its beginning.
struct ZoneRange {
  uint32_t offset, units;
  bool operator==(const ZoneRange&) const = default;
};

// A script's own space of offsets: first the fragments that it uses, then, from zone_offset up, the planned zone.
struct Script {
  std::vector<Fragment> fragments;   // ascending
  uint32_t zone_offset = 0;          // in units
  std::vector<ScriptEntry> entries;  // plus one at the end that closes first_successor
  // Successors of entry i: the entries that use some of its addresses next, on the cycle. So every planned entry has at
  // least one predecessor and one successor, if only itself in the next iteration.
  //
  //   offset ▲ ┌──┐┌──────┐         0 → 1, 0 → 2: both lie on addresses that 0 used last
  //          │ │1 ││  2   │         1 → 0, 2 → 0: in the next iteration
  //          │ └──┘└──────┘
  //          │┌┐
  //          ││0│ ...
  std::vector<uint32_t> successors;
  // Every run of kContext sizes in the cycle, hashed, with the entry after it. Finds the position again after it was
  // lost.
  static constexpr uint32_t kContext = 4;
  std::vector<std::pair<uint32_t, uint32_t>> contexts;  // (hash, entry), sorted
  Profile profile;
  // Where no entry lies: blocks of other scripts live there during the cycle. Ascending, disjoint.
  std::vector<ZoneRange> reserved_ranges;
  uint64_t height_bytes = 0;    // of the planned zone
  uint64_t fragment_bytes = 0;  // used of the fragments
  uint64_t lower_bound_bytes = 0;
  LoadColumns load = {};  // of the planned blocks, over the cycle
  // Waits between streams that the placement makes in a cycle (CountStreamEdges), and those that it avoids.
  uint64_t stream_edges = 0, avoided_stream_edges = 0;

  uint32_t size() const { return static_cast<uint32_t>(profile.blocks.size()); }
};

uint32_t ContextHash(const uint32_t* units_of_last, uint32_t count);  // of `count` sizes, oldest first

// Joins a profile and its placement into a script. `index`: as ToInstance returned it. `offsets`: in the script's own
// space, which begins with `fragments`. Fragments that no entry uses are dropped. O(n log n + edges).
Script CompileScript(const Profile& profile, const std::vector<uint32_t>& index, const std::vector<Offset>& offsets,
                     const std::vector<Fragment>& fragments, uint32_t zone_offset, Bytes lower_bound);

}  // namespace hotpack
