// PyTorch's caching allocator with expandable_segments:True (pytorch_rules.h cites the rules' sources). Differences to
// the rules without it:
//   - Each stream has one segment per pool: a reservation of addresses that is mapped as needed, in granules of 2 MiB
//     (small pool) or 20 MiB (large pool). It has 9/8 of the device's memory. If that does not suffice, because of
//     unmapped addresses between blocks, there is a further segment.
//   - The rest of a chunk is always cut off, from 512 bytes on.
//   - Among the free chunks that hold a request, the one before unmapped addresses counts as large as it can become. So
//     larger ones elsewhere may be taken first.
//   - If nothing fits: takes the lowest unmapped addresses, with the free chunk before them if there is one, as long as
//     enough free or unmapped addresses follow. Maps granules until the request is covered.
//   - If the device has no more: unmaps all granules without blocks, of all pools and streams, and tries once more.
//
//   addresses ├─ live ─┼─ free ─┼┄┄┄┄ unmapped ┄┄┄┄┄┄┄┄┄┄►        a request larger than the free chunk:
//             ├─ live ─┼─── live ────┼─ free ─┼┄┄ unmapped ┄┄►    maps granules behind it; the last one's rest is free
//             0                          granule
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "tools/compare/pytorch_rules.h"
#include "tools/compare/segment_policy.h"

namespace hotpack {
namespace {

using namespace pytorch;  // the constants and rules of one header

constexpr uint64_t kUnlimited = uint64_t{1} << 46;  // bytes of a device without a limit
// Driver calls per granule: create and map, or unmap and release. Access is set once for all that are mapped together.
constexpr uint64_t kCallsPerGranule = 2;

class PyTorchExpandable : public SegmentPolicy {
 public:
  using SegmentPolicy::SegmentPolicy;

  bool Allocate(uint32_t request, uint64_t bytes, uint32_t stream) override {
    const uint64_t size = SizeOf(bytes);
    const Pool pool = PoolOf(size);
    int32_t chunk = FindFree(pool, stream, size);
    if (chunk < 0) chunk = Expand(pool, stream, size);
    if (chunk < 0) {
      UnmapFree();
      chunk = Expand(pool, stream, size);
      if (chunk < 0) return false;
    }
    if (segments_[chunk].size - size >= kUnit) Insert(segments_.Split(chunk, size));
    Occupy(chunk, request);
    return true;
  }

 private:
  using Unmapped = std::set<std::pair<std::pair<uint32_t, uint64_t>, int32_t>>;  // stream, address, chunk

  static uint64_t Granule(uint32_t pool) { return pool == kSmall ? kSmallSegment : kLargeSegment; }

  // Returns the addresses of a segment, a multiple of both granules.
  uint64_t Reservation() const {
    const uint64_t memory = device_->capacity() == 0 ? kUnlimited : device_->capacity();
    return RoundUp(memory + memory / 8, kLargeSegment);
  }

  // Of equal ones the lowest first.
  Key KeyOf(int32_t chunk) const {
    return {segments_[chunk].stream, segments_[chunk].size, segments_[chunk].address, chunk};
  }

  // Mapped and unmapped chunks go to different sets.
  void Insert(int32_t chunk) override {
    const Chunk& c = segments_[chunk];
    if (c.mapped) {
      free_[c.pool].insert(KeyOf(chunk));
    } else {
      unmapped_[c.pool].insert({{c.stream, c.address}, chunk});
    }
  }
  void Erase(int32_t chunk) override {
    const Chunk& c = segments_[chunk];
    if (c.mapped) {
      free_[c.pool].erase(KeyOf(chunk));
    } else {
      unmapped_[c.pool].erase({{c.stream, c.address}, chunk});
    }
  }

  // Returns the size that a free chunk can reach without moving anything.
  uint64_t ExpandableSize(int32_t chunk) const {
    const int32_t next = segments_[chunk].next;
    return segments_[chunk].size + (next >= 0 && !segments_[next].mapped ? segments_[next].size : 0);
  }

  int32_t FindFree(Pool pool, uint32_t stream, uint64_t size) {
    FreeSet& free = free_[pool];
    auto found = free.lower_bound({stream, size, 0, 0});
    if (found == free.end() || std::get<0>(*found) != stream) return -1;
    for (auto next = std::next(found); next != free.end() && std::get<0>(*next) == stream &&
                                       ExpandableSize(ChunkOf(*next)) < ExpandableSize(ChunkOf(*found));) {
      found = next++;
    }
    const int32_t chunk = ChunkOf(*found);
    free.erase(found);
    return chunk;
  }

  bool HasRoom(int32_t chunk, uint64_t size) const {
    uint64_t room = 0;
    for (; chunk >= 0 && !segments_[chunk].live && room < size; chunk = segments_[chunk].next)
      room += segments_[chunk].size;
    return room >= size;
  }

  // Returns the first of the free or unmapped chunks that become the place of a request that no free chunk holds.
  int32_t FindPlace(Pool pool, uint32_t stream, uint64_t size) {
    for (auto i = unmapped_[pool].lower_bound({{stream, 0}, 0}); i != unmapped_[pool].end() && i->first.first == stream;
         ++i) {
      const int32_t prev = segments_[i->second].prev;
      const int32_t chunk = prev >= 0 && !segments_[prev].live ? prev : i->second;
      if (HasRoom(chunk, size)) return chunk;
    }
    const int32_t chunk = segments_.Add(Reservation(), stream, pool);
    segments_[chunk].mapped = false;
    Insert(chunk);
    return chunk;
  }

  // Maps granules until there is a free chunk of at least `size`, and takes it out of its set. Returns -1 if out of
  // memory.
  int32_t Expand(Pool pool, uint32_t stream, uint64_t size) {
    int32_t chunk = FindPlace(pool, stream, size);
    if (!segments_[chunk].mapped && (chunk = Map(chunk, size)) < 0) return -1;
    while (segments_[chunk].size < size) {
      chunk = Map(segments_[chunk].next, size - segments_[chunk].size);
      if (chunk < 0) return -1;
    }
    Erase(chunk);
    return chunk;
  }

  // Maps the first `size` bytes of an unmapped chunk, or all of it, rounded up to granules. Returns the free chunk that
  // then contains them; -1 if the device lacks the memory (nothing is changed then).
  int32_t Map(int32_t chunk, uint64_t size) {
    const uint64_t granule = Granule(segments_[chunk].pool);
    const uint64_t bytes = RoundUp(std::min(size, segments_[chunk].size), granule);
    for (uint64_t done = 0; done < bytes; done += granule) {
      if (device_->Take(granule, kCallsPerGranule)) continue;
      device_->Give(done, done / granule * kCallsPerGranule, 0);
      return -1;
    }
    device_->Take(0, 1);  // access
    Erase(chunk);
    if (bytes < segments_[chunk].size) Insert(segments_.Split(chunk, bytes));
    segments_[chunk].mapped = true;
    chunk = Join(chunk);
    Insert(chunk);
    return chunk;
  }

  void UnmapFree() {
    for (Pool pool : {kLarge, kSmall}) {
      std::vector<int32_t> chunks;
      for (const Key& key : free_[pool]) chunks.push_back(ChunkOf(key));
      for (int32_t chunk : chunks) Unmap(chunk);
    }
  }

  // Unmaps the granules that are wholly inside the free chunk. The host waits for its stream first.
  void Unmap(int32_t chunk) {
    const uint64_t granule = Granule(segments_[chunk].pool);
    const uint64_t begin = RoundUp(segments_[chunk].address, granule);
    const uint64_t end = (segments_[chunk].address + segments_[chunk].size) / granule * granule;
    if (begin >= end) return;
    Erase(chunk);
    if (begin > segments_[chunk].address) {
      const int32_t before = chunk;
      chunk = segments_.Split(before, begin - segments_[before].address);
      Insert(before);
    }
    if (end - begin < segments_[chunk].size) Insert(segments_.Split(chunk, end - begin));
    segments_[chunk].mapped = false;
    device_->Give(end - begin, (end - begin) / granule * kCallsPerGranule, 1);
    Insert(Join(chunk));
  }

  FreeSet free_[2];       // by pool
  Unmapped unmapped_[2];  // by pool
};

}  // namespace

std::unique_ptr<PeerPolicy> MakePyTorchExpandable(ModelDevice* device) {
  return std::make_unique<PyTorchExpandable>(device);
}

}  // namespace hotpack
