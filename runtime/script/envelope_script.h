// What a job follows of an envelope at one moment: its entries, and the places of their blocks. Immutable once made,
// so that a thread may follow it while another one merges.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
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

// What a request is compared with, by entry: one cache line.
struct EnvelopeStep {
  uint64_t context = 0;                        // the last one that is new
  uint64_t contexts_seen = 0, sizes_seen = 0;  // a bit each: Bit
  uint32_t successor = kNone;                  // the only one; kNone: there is none, or several
  uint32_t last_units = 0, max_units = 0, min_units = 0;
  uint32_t first_size = 0, first_context = 0, first_release = 0;  // in EnvelopeScript::sizes, ::contexts, ::releases
  uint16_t sizes = 0;                                             // their numbers
  uint8_t contexts = 0, releases = 0;
  uint32_t releases_seen = 0;  // a bit each: ReleasesBit
  bool fixed = false;          // the entry's size has never changed
  bool overlaps = false;       // two of its blocks were live at once: LiveMoments::Overlaps

  // A value that was seen has its bit. One whose bit is missing need not be looked for.
  static uint64_t Bit(uint64_t value) { return uint64_t{1} << (value * 0x9E3779B97F4A7C15u >> 58); }
  // Numbers of releases from kManyReleases on share a bit.
  static constexpr uint32_t kManyReleases = 31;
  static uint32_t ReleasesBit(uint32_t releases) { return 1u << (releases < kManyReleases ? releases : kManyReleases); }
};
static_assert(sizeof(EnvelopeStep) == 64);

// An entry's successors, with what a choice of each of them costs. Successors are EnvelopeScript::choices, from
// first_choice on. Of each branch that was seen there, one chance for each of them lies in EnvelopeScript::chances. An
// entry with one successor has no branches: its chance is 1.
struct EnvelopeFork {
  uint32_t first_choice = 0, first_branch = 0, first_chance = 0;
  uint32_t choices = 0, branches = 0;
};
struct EnvelopeChoice {
  uint32_t entry = 0;
  uint32_t step = 0;  // what the choice adds to the branch
  double chance = 0;  // its logarithm to the base 2, on a branch that was not seen there
};

// Entries by a key: a size, or a context. The last ones in the sequence come first.
class EnvelopeIndex {
 public:
  void Add(uint64_t key, uint32_t entry) { pairs_.emplace_back(key, entry); }  // in the order of the sequence
  void Finish();                                                               // O(pairs · log pairs)
  std::span<const uint32_t> Find(uint64_t key) const;                          // O(log keys)
  uint64_t HostBytes() const;

 private:
  std::vector<std::pair<uint64_t, uint32_t>> pairs_;  // until Finish
  std::vector<uint64_t> keys_;                        // ascending
  std::vector<uint32_t> begins_, entries_;            // of the keys, in entries_; and the end
};

struct EnvelopeScript {
  std::vector<EnvelopeEntry> entries;
  std::vector<EnvelopeStep> steps;  // by entry
  std::vector<EnvelopeFork> forks;  // by entry
  std::vector<EnvelopeChoice> choices;
  std::vector<uint32_t> branches;          // one fork after the other, in the order in which they were seen
  std::vector<double> chances;             // logarithms to the base 2
  std::vector<uint32_t> sizes;             // that entries were seen with, one entry after the other, ascending
  std::vector<uint64_t> contexts;          // the same, in the order in which they were seen
  std::vector<uint32_t> releases;          // the same
  std::vector<uint32_t> order, positions;  // as in Envelope
  uint32_t last_entry = kNone, branch = 0;
  EnvelopeIndex by_context, by_units;  // entries that were seen with it
  // By PlaceIndex, a bit for each of EnvelopeSupport::places: its entry comes before that of the place in every
  // iteration, and not again while a block of that lives. A loop may go back. Of another stream nothing is past: the
  // block would wait for its work.
  std::vector<uint8_t> past;
  std::shared_ptr<const EnvelopePlaces> places;  // null: none are planned
  uint64_t host_bytes = 0;  // of the host's memory, about: this and the envelope that the planner goes on with

  // As EnvelopeBranch, from an entry to its successor.
  static uint32_t NextBranch(const EnvelopeFork& fork, const EnvelopeChoice& choice, uint32_t before) {
    return fork.choices < 2 ? before : EnvelopeBranchStep(before, choice.step);
  }
};

// O(entries · log entries).
std::shared_ptr<const EnvelopeScript> MakeEnvelopeScript(const Envelope& envelope,
                                                         std::shared_ptr<const EnvelopePlaces> places);

}  // namespace hotpack
