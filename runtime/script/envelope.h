// An envelope: one sequence of entries that has every iteration seen as a subsequence. An iteration need not repeat it,
// only fit in it: lengths may change, layers may be left out, evaluation may come between.
//
// - A finished iteration is merged: its requests are aligned to the entries (envelope_alignment.h), and what finds none
//   is inserted.
// - Which entries are live together is remembered (live_moments.h). Placements keep only those apart.
// - An entry of which two blocks were live at once has two places.
// - An entry whose blocks are not released within kMaxIterations has no place: weights, optimizer state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "packer/types.h"
#include "runtime/script/conflict_placement.h"
#include "runtime/script/live_moments.h"
#include "runtime/script/request_sign.h"
#include "runtime/script/script.h"

namespace hotpack {

// A life in requests, on a scale of half octaves: lives that differ little are alike. So are all of 16 requests or
// more: how long a block lives that waits for the backward pass depends on the turns of loops in between. `age` 0: not
// released.
int LifeClass(uint64_t age);

// One request of a finished iteration.
struct EnvelopeRequest {
  RequestSign sign;
  uint64_t released = UINT64_MAX;  // requests of the run so far when its block was released; UINT64_MAX: not yet
  uint32_t taken = kNone;          // the entry whose place served it; kNone: none
  uint16_t stream = 0;             // that it names: a small ordinal; 0: none
};

struct EnvelopeEntry {
  uint32_t max_units = 0, min_units = UINT32_MAX, last_units = 0;
  uint32_t requests = 0, changes = 0;     // of size
  uint32_t first_units = 0, growths = 0;  // growths: requests that were larger than all before
  std::vector<uint32_t> sizes;            // the last different ones, in units
  std::vector<uint64_t> contexts;         // RequestSign::context
  std::vector<uint32_t> releases;         // RequestSign::releases
  int life = 0;                           // LifeClass of the last block
  uint32_t releases_seen = 0, overlong = 0;
  bool retained = false;
  bool outlasts = false;  // a block of it was live at the end of its iteration
  uint16_t stream = 0;    // of its last request that named one; 0: none did
  // The latest entry that was requested before a block of it was released, in the same iteration; kNone: none yet.
  uint32_t until = kNone;

  // Entries of the next request, with how often that was lately. Choices are alike in the layers of a model: they are
  // kept apart by the last two choices (Envelope::NextBranch).
  struct Successor {
    uint32_t entry = 0;
    float weight = 0;
    std::vector<std::pair<uint32_t, float>> by_branch;
  };
  std::vector<Successor> successors;

  uint64_t HostBytes() const;  // with its lists, about
  bool HasSize(uint32_t units) const { return Has(sizes, units); }
  bool HasContext(uint64_t context) const { return Has(contexts, context); }
  bool HasReleases(uint32_t count) const { return Has(releases, count); }
  bool OnOtherStream(const EnvelopeEntry& other) const {
    return stream != 0 && other.stream != 0 && stream != other.stream;
  }

 private:
  template <typename Value>
  static bool Has(const std::vector<Value>& values, Value value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  }
};

// The choice after an entry, as a number that stands for the last two choices. Positions are indices in the sequence.
// `before`: that number before the choice. An entry with one successor is no choice.
uint32_t EnvelopeBranch(const EnvelopeEntry& from, uint32_t from_position, uint32_t to_position, uint32_t before);
// The two parts of it: what a choice is, and what a branch becomes by it.
inline constexpr uint32_t kBranchChoices = 1024;
inline uint32_t EnvelopeChoiceStep(uint32_t from_position, uint32_t to_position) {
  return (to_position - from_position + kBranchChoices / 2) % kBranchChoices;
}
inline uint32_t EnvelopeBranchStep(uint32_t before, uint32_t step) {
  return before % kBranchChoices * kBranchChoices + step;
}

struct EnvelopeLimits {
  // An iteration is merged as far as the envelope's load stays below this multiple of the larger one of the two loads.
  // Beyond it, only equal sizes are aligned; if that is not enough either, the iteration is appended.
  double load_growth = 1.1;
  // Of sizes that have changed. More serves more requests when lengths grow, and holds more memory: pages have room for
  // places whose headroom is not used.
  double headroom = 1.05;
  uint64_t most_entries = 20'000;  // bounds the host's memory: conflicts take entries² / 8 bytes
};

// Pure: no lock, no thread. Not thread-safe.
class Envelope {
 public:
  static constexpr uint32_t kMaxIterations = 6;
  using ReleasedAt = std::function<uint64_t(uint64_t ordinal)>;

  explicit Envelope(const EnvelopeLimits& limits = {}) : limits_(limits) {}

  // Merges an iteration whose first request has the ordinal `first`; they follow each other without gaps.
  // `released_at`: as EnvelopeRequest::released, of requests of earlier iterations. Returns the entry of each request.
  // If there would be too many entries, merges nothing, returns kNone for each request, and the envelope is full.
  // O(entries · requests) of the parts that are not alike.
  std::vector<uint32_t> Merge(uint64_t first, const std::vector<EnvelopeRequest>& iteration,
                              const ReleasedAt& released_at);

  const std::vector<EnvelopeEntry>& entries() const { return entries_; }
  const std::vector<uint32_t>& order() const { return order_; }         // entries in the sequence's order
  const std::vector<uint32_t>& positions() const { return position_; }  // by entry: its index in order()
  const LiveMoments& moments() const { return moments_; }
  uint64_t HostBytes() const;                // about. O(entries + moments)
  bool changed() const { return changed_; }  // since ClearChanged: a placement would be another
  void ClearChanged() { changed_ = false; }
  bool full() const { return full_; }  // EnvelopeLimits::most_entries
  uint32_t iterations() const { return iterations_; }

  uint32_t branch() const { return branch_; }  // after the last request merged
  uint32_t last_entry() const { return last_entry_; }

  // The packer's input. Block i belongs to entry (*index)[i]; an entry with two places has two blocks, one after the
  // other. Sizes in bytes, with headroom.
  Instance ToInstance(std::vector<uint32_t>* index) const;
  // Returns the pairs of these blocks that may not overlap. O(blocks²).
  ConflictRows Conflicts(const std::vector<uint32_t>& index) const;
  // Returns whether two entries are of different streams.
  bool HasSeveralStreams() const;
  // Returns the conflicts and the pairs of different streams: where they share addresses, one stream waits for the
  // other's work. O(blocks²).
  ConflictRows WithStreamsApart(ConflictRows conflicts, const std::vector<uint32_t>& index) const;
  // Returns pairs that had better not overlap either: first those of different streams, then also those that met at
  // their places, then also those that an entry would meet that was taken for another, then also those of which one
  // lies within the other's longest life in the sequence: alternatives that may yet come together.
  // O(blocks² + mistakes · blocks).
  std::vector<ConflictRows> Wishes(const ConflictRows& conflicts, const std::vector<uint32_t>& index) const;
  // A request of `entry` found its place in use by a block of `other`.
  void Met(uint32_t entry, uint32_t other);
  uint64_t LoadUnits() const;      // of the entries that have a place, without headroom
  uint64_t RoomLoadUnits() const;  // of their places
  // The size of an entry's place: with headroom if its size has changed. Of a size that grows most of the time, what it
  // will have after as many iterations again.
  uint32_t RoomUnits(uint32_t entry) const;

 private:
  struct LiveBlock {
    uint64_t ordinal = 0;
    uint32_t entry = 0, iteration = 0;
  };
  uint64_t IterationLoad(uint64_t first, const std::vector<EnvelopeRequest>& iteration, const ReleasedAt& released_at,
                         const std::vector<uint32_t>& units, const std::vector<uint32_t>& carried_units) const;
  uint64_t LoadWith(uint64_t first, const std::vector<EnvelopeRequest>& iteration, const std::vector<uint32_t>& entries,
                    const ReleasedAt& released_at) const;
  std::vector<uint32_t> Align(uint64_t first, const std::vector<EnvelopeRequest>& iteration,
                              const ReleasedAt& released_at) const;
  void Insert(std::vector<uint32_t>* entries);
  void Learn(EnvelopeEntry* entry, const EnvelopeRequest& request, int life);
  uint32_t NextBranch(uint32_t from, uint32_t to) const {
    return EnvelopeBranch(entries_[from], position_[from], position_[to], branch_);
  }
  void LearnSuccessor(uint32_t from, uint32_t to);
  void LearnLives(uint64_t first, const std::vector<EnvelopeRequest>& iteration, const std::vector<uint32_t>& entries,
                  const ReleasedAt& released_at);
  void Bury(const LiveBlock& block);
  void LearnLongestLife(uint32_t entry, uint32_t until);
  void LearnMistakes(const std::vector<EnvelopeRequest>& iteration, const std::vector<uint32_t>& entries);
  std::vector<uint32_t> PlacedUnits() const;

  const EnvelopeLimits limits_;
  std::vector<EnvelopeEntry> entries_;
  std::vector<uint32_t> order_, position_;
  bool full_ = false;
  LiveMoments moments_;
  std::vector<LiveBlock> live_;                          // in the order of their requests
  std::vector<std::pair<uint32_t, uint32_t>> mistaken_;  // (taken, right)
  std::set<std::pair<uint32_t, uint32_t>> met_;
  uint32_t iterations_ = 0, last_entry_ = kNone, branch_ = 0;
  bool changed_ = false;
};

}  // namespace hotpack
