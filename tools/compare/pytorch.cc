// PyTorch's caching allocator without options (pytorch_rules.h cites the rules' sources):
//   - Sizes are rounded up to 512 bytes. Sizes up to 1 MiB belong to the small pool, others to the large pool. Each
//     stream has its own pools.
//   - A request gets the smallest free chunk of its pool and stream that holds it. The rest is cut off if it is at
//     least 512 bytes (small pool) or more than 1 MiB (large pool). Otherwise the block keeps it.
//   - If nothing fits: cudaMalloc of a segment of 2 MiB (small pool), 20 MiB (requests below 10 MiB), or of the size
//     rounded up to 2 MiB.
//   - A freed chunk is joined with its free neighbours and stays cached.
//   - If cudaMalloc fails: all segments that are wholly free are returned, of all pools and streams, and it is called
//     once more.
//
//   20 MiB segment   ├── 4 MiB live ──┼── 6 MiB live ──┼──── 10 MiB free ────┤   a request of 9.5 MiB takes all of the
//                                                                            rest: 0.5 MiB are not more than 1 MiB
#include "tools/compare/pytorch_rules.h"
#include "tools/compare/segment_policy.h"

namespace hotpack {
namespace {

using namespace pytorch;  // the constants and rules of one header

class PyTorch : public SegmentPolicy {
 public:
  using SegmentPolicy::SegmentPolicy;

  bool Allocate(uint32_t request, uint64_t bytes, uint32_t stream) override {
    const uint64_t size = SizeOf(bytes);
    const Pool pool = PoolOf(size);
    int32_t chunk = TakeFirst(&free_[pool], stream, size);
    if (chunk < 0) {
      const uint64_t segment = SegmentSize(size);
      if (!device_->Take(segment, 1)) {
        for (FreeSet& free : free_) GiveBackWhole(&free);
        if (!device_->Take(segment, 1)) return false;
      }
      chunk = segments_.Add(segment, stream, pool);
    }
    const uint64_t rest = segments_[chunk].size - size;
    if (pool == kSmall ? rest >= kUnit : rest > kLargestSmall) Insert(segments_.Split(chunk, size));
    Occupy(chunk, request);
    return true;
  }

 private:
  static uint64_t SegmentSize(uint64_t size) {
    if (size <= kLargestSmall) return kSmallSegment;
    return size < kOwnSegment ? kLargeSegment : RoundUp(size, kOwnUnit);
  }

  // Of equal ones the lowest first.
  Key KeyOf(int32_t chunk) const {
    return {segments_[chunk].stream, segments_[chunk].size, segments_[chunk].address, chunk};
  }
  void Insert(int32_t chunk) override { free_[segments_[chunk].pool].insert(KeyOf(chunk)); }
  void Erase(int32_t chunk) override { free_[segments_[chunk].pool].erase(KeyOf(chunk)); }

  FreeSet free_[2];  // by pool
};

}  // namespace

std::unique_ptr<PeerPolicy> MakePyTorch(ModelDevice* device) { return std::make_unique<PyTorch>(device); }

}  // namespace hotpack
