// Learns an envelope from iterations that have ended, and places its entries: what the planner's thread does for jobs
// whose iterations differ.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "packer/block_unit.h"
#include "packer/pack.h"
#include "packer/stream_edges.h"
#include "profiler/history.h"
#include "runtime/memory/arena.h"
#include "runtime/script/envelope.h"
#include "runtime/script/envelope_script.h"

namespace hotpack {

struct EnvelopeSettings {
  EnvelopeLimits limits;
  int64_t pack_ns = 1'000'000'000;  // for one placement
  bool logical_time = false;        // the limit counts work instead of time (packer/stop.h)
  // A placement may be higher by the first factor, and have more chunks in use by the second one, than the best of all
  // placements tried, if it keeps apart more of what met by mistake. Fragments are used if they save that many chunks.
  double height_cost = 1.05, chunks_cost = 1.02;
  uint64_t compared_pairs = 20'000'000;  // to lower the height, for one placement: about 50 ms
  // Of more blocks, one further placement is tried, without wishes, and blocks lie at their places: a relation takes
  // blocks² / 8 bytes, a placement up to blocks² / 2 comparisons.
  uint64_t few_blocks = 6'000;
  uint64_t large_alignment = kBlockUnit;   // bytes: of blocks of at least kLargeBlock
  uint64_t chunk_bytes = 2 << 20;          // the least by which fragments must lower the zone
  uint64_t most_moment_entries = 1 << 24;  // bounds the host's memory: moments take 4 bytes for each entry they have
};

// Returns the requests [begin, end) of the history's tail as an iteration. The tail must end no later than the job is
// now, and hold all of them; what was released in the iteration is known as far as the tail goes back. O(tail).
std::vector<EnvelopeRequest> EnvelopeIteration(const HistoryTail& tail, uint64_t begin, uint64_t end);

// Not thread-safe: one thread learns, and hands scripts to the one that follows.
class EnvelopeLearner {
 public:
  explicit EnvelopeLearner(const EnvelopeSettings& settings) : settings_(settings), envelope_(settings.limits) {}

  // As Envelope::Merge.
  std::vector<uint32_t> Merge(uint64_t first, const std::vector<EnvelopeRequest>& iteration,
                              const Envelope::ReleasedAt& released_at) {
    return envelope_.Merge(first, iteration, released_at);
  }
  // Returns whether the envelope has outgrown its limits. It must not be merged into any more.
  bool Full() const;
  void Met(uint32_t entry, uint32_t other) { envelope_.Met(entry, other); }  // as Envelope::Met
  bool changed() const { return envelope_.changed(); }                       // since the last placement
  const Envelope& envelope() const { return envelope_; }
  const std::shared_ptr<const EnvelopePlaces>& places() const { return places_; }

  // Places all entries. `fragments`: memory outside the zone that is held anyway, ascending; blocks are placed there if
  // then clearly fewer chunks of the zone are in use (EnvelopeSettings::chunks_cost). Null: those of the last time.
  // `cancel`: may be set from another thread; null: never. Returns nanoseconds of packing: of the clock, or of work.
  int64_t Place(const std::vector<AddressRange>* fragments = nullptr, const std::atomic<bool>* cancel = nullptr);
  // Frees those made before that are not used any more: a request that leaves one does not wait for that.
  std::shared_ptr<const EnvelopeScript> Script();

 private:
  struct Packed {
    Instance instance;
    std::vector<uint32_t> index;  // entries of the blocks; walls come after them
    PackResult result;
    std::vector<Fragment> fragments;
    uint32_t zone_offset = 0;
    uint64_t used_chunks = 0;  // UsedChunks(result.placement)
    StreamEdges edges;         // pairs of blocks of different streams that share addresses: as packed, and as placed
    Bytes ZoneBytes() const { return result.placement.height - Bytes{zone_offset} * Bytes{kBlockUnit}; }
  };
  Packed PackEntries(const std::vector<AddressRange>& fragments, const std::atomic<bool>* cancel) const;
  uint64_t UsedChunks(const Packed& packed, const Placement& placement) const;
  std::vector<Bytes> LoadsMet(const Packed& packed) const;
  bool IsFew(const Packed& packed) const { return packed.index.size() <= settings_.few_blocks; }
  std::vector<Placement> Candidates(const Packed& packed, const ConflictRows& conflicts,
                                    const std::vector<ConflictRows>& wishes, const std::atomic<bool>* cancel) const;
  void Improve(const std::atomic<bool>* cancel, Packed* packed) const;

  const EnvelopeSettings settings_;
  Envelope envelope_;
  std::vector<AddressRange> fragments_;  // of the last placement
  std::shared_ptr<const EnvelopePlaces> places_;
  std::vector<std::shared_ptr<const EnvelopeScript>> made_;
};

// Returns whether a further plan is within the credit: plans grow with the logarithm of the iterations.
bool WithinPlanCredit(uint64_t plans, uint64_t iterations);

// The same for a placement of an envelope. `scripts`: plans of single iterations, made before. Four of them count at
// most: a job that does not announce its marks may have had many, and they must not use up the credit.
bool MayPlaceAgain(uint64_t placements, uint64_t scripts, uint64_t iterations);

}  // namespace hotpack
