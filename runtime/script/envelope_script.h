// What a job follows of an envelope at one moment: its entries, and the places of their blocks. Immutable once made,
// so that a thread may follow it while another one merges.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/script/envelope.h"

namespace hotpack {

// Where blocks of an entry go, in units of 512 bytes: in the placement's own space, as Script has it.
struct EnvelopePlace {
  uint32_t room = 0;                     // units; 0: no place
  uint32_t offsets[2] = {kNone, kNone};  // two for an entry that overlaps itself

  bool operator==(const EnvelopePlace&) const = default;
};

// What lies below a place: how far down its block may lie, since blocks below may be smaller than their places.
struct EnvelopeSupport {
  struct Place {
    uint32_t place = 0;  // index, as in EnvelopePlaces::supports
    uint32_t top = 0;    // its end, in units
  };
  uint32_t floor = 0;  // units: of the zone or fragment, or the end of places that are not listed
  // That end above the floor and at most at the place, and conflict with it or are of another stream; highest first.
  std::vector<Place> places;
};

// A placement of an envelope's entries.
struct EnvelopePlaces {
  static constexpr size_t kSupports = 8;  // that a place lists
  static uint32_t PlaceIndex(uint32_t entry, uint32_t which) { return 2 * entry + which; }

  std::vector<EnvelopePlace> by_entry;    // entries that came later have none
  std::vector<EnvelopeSupport> supports;  // by PlaceIndex
  std::vector<Fragment> fragments;        // memory outside the zone that is held anyway, ascending
  uint32_t zone_offset = 0;               // where the zone begins in the space
  uint64_t zone_units = 0;                // its height
  uint64_t load_units = 0;                // of all rooms: no placement is lower, zone and fragments together
  // Pairs of places of different streams that share addresses, and how many more there were as packed at first.
  uint64_t stream_edges = 0, avoided_stream_edges = 0;

  // Fills in `supports`. `index`: the entries of the first blocks of `apart`, as Envelope::ToInstance returns them.
  // `apart`: pairs that conflict, or whose blocks had better lie apart. O(blocks²).
  void FindSupports(const std::vector<uint32_t>& index, const ConflictRows& apart);
  uint32_t FloorOf(uint32_t offset) const;  // where the zone or fragment begins that has the offset
  // Returns the device address of an offset. `zone`: the zone's beginning.
  uint64_t AddressOf(uint32_t offset, uint64_t zone) const;
  const EnvelopePlace* Find(uint32_t entry) const {
    return entry < by_entry.size() && by_entry[entry].room > 0 ? &by_entry[entry] : nullptr;
  }
};

// What the usual request needs of an entry.
struct EnvelopeStep {
  uint64_t context = 0;        // the last one that is new
  uint32_t successor = kNone;  // the only one; kNone: there is none, or several
  uint32_t last_units = 0, max_units = 0, min_units = 0;
  uint32_t first_size = 0, first_context = 0;  // in EnvelopeScript::sizes, ::contexts
  uint16_t sizes = 0, contexts = 0;            // their number
  bool fixed = false;                          // the entry's size has never changed
  bool overlaps = false;                       // two of its blocks were live at once: LiveMoments::Overlaps
};

struct EnvelopeScript {
  std::vector<EnvelopeEntry> entries;
  std::vector<EnvelopeStep> steps;         // by entry
  std::vector<uint32_t> sizes;             // that entries were seen with, one entry after the other, ascending
  std::vector<uint64_t> contexts;          // the same, in the order in which they were seen
  std::vector<uint32_t> order, positions;  // as in Envelope
  uint32_t last_entry = kNone, branch = 0;
  std::unordered_multimap<uint64_t, uint32_t> by_context, by_units;  // entries that were seen with it
  std::shared_ptr<const EnvelopePlaces> places;                      // null: none are planned
  uint64_t host_bytes = 0;  // of the host's memory, about: this and the envelope that the planner goes on with

  uint32_t NextBranch(uint32_t from, uint32_t to, uint32_t before) const {
    return EnvelopeBranch(entries[from], positions[from], positions[to], before);
  }
};

// O(entries).
std::shared_ptr<const EnvelopeScript> MakeEnvelopeScript(const Envelope& envelope,
                                                         std::shared_ptr<const EnvelopePlaces> places);

}  // namespace hotpack
