// PyTorch's caching allocator as it is without options (pytorch_rules.h says where the rules come from):
//   - sizes are rounded up to 512 bytes; up to 1 MiB is the small pool's, the rest the large pool's; each stream has pools
//     of its own;
//   - a request gets the smallest free chunk of its pool and stream that holds it. The rest is cut off when it is at least
//     512 bytes (small pool) or more than 1 MiB (large pool); what is not cut off is lost to the block;
//   - nothing fits: cudaMalloc of a segment of 2 MiB (small pool), 20 MiB (requests below 10 MiB), or of the size rounded
//     up to 2 MiB;
//   - a freed chunk is joined with its free neighbours and stays cached;
//   - cudaMalloc fails: all segments that are free as a whole are given back, of all pools and streams, and it is called
//     once more.
//
//   20 MiB segment   ├── 4 MiB live ──┼── 6 MiB live ──┼──── 10 MiB free ────┤   a request of 9.5 MiB takes all of the
//                                                                            rest: 0.5 MiB are not more than 1 MiB
#include <vector>

#include "tools/peers/policy.h"
#include "tools/peers/pytorch_rules.h"

namespace hotpack {
namespace {

using namespace pytorch;  // the constants and rules of one header

class PyTorch : public PeerPolicy {
 public:
  explicit PyTorch(PeerDevice* device) : device_(device) {}

  bool Allocate(uint32_t request, uint64_t bytes, uint32_t stream) override {
    const uint64_t size = SizeOf(bytes);
    const Pool pool = PoolOf(size);
    int32_t chunk = FindFree(pool, stream, size);
    if (chunk < 0) {
      const uint64_t segment = SegmentSize(size);
      if (!device_->Take(segment, 1)) {
        ReleaseWholeSegments();
        if (!device_->Take(segment, 1)) return false;
      }
      chunk = segments_.Add(segment, stream, pool);
    }
    const uint64_t rest = segments_[chunk].size - size;
    if (pool == kSmall ? rest >= kUnit : rest > kLargestSmall) Insert(segments_.Split(chunk, size));
    segments_[chunk].live = true;
    if (chunks_.size() <= request) chunks_.resize(request + 1, -1);
    chunks_[request] = chunk;
    return true;
  }

  void Release(uint32_t request) override {
    int32_t chunk = chunks_[request];
    segments_[chunk].live = false;
    const int32_t next = segments_[chunk].next, prev = segments_[chunk].prev;
    if (next >= 0 && !segments_[next].live) {
      Erase(next);
      segments_.JoinNext(chunk);
    }
    if (prev >= 0 && !segments_[prev].live) {
      Erase(prev);
      segments_.JoinNext(prev);
      chunk = prev;
    }
    Insert(chunk);
  }

  uint64_t AddressOf(uint32_t request) const override { return segments_[chunks_[request]].address; }

 private:
  static uint64_t SegmentSize(uint64_t size) {
    if (size <= kLargestSmall) return kSmallSegment;
    return size < kOwnSegment ? kLargeSegment : RoundUp(size, kOwnUnit);
  }

  int32_t FindFree(Pool pool, uint32_t stream, uint64_t size) {
    auto found = free_[pool].lower_bound({stream, size, 0, 0});
    if (found == free_[pool].end() || std::get<0>(*found) != stream) return -1;
    const int32_t chunk = ChunkOf(*found);
    free_[pool].erase(found);
    return chunk;
  }

  void Insert(int32_t chunk) { free_[segments_[chunk].pool].insert(KeyOf(segments_, chunk)); }
  void Erase(int32_t chunk) { free_[segments_[chunk].pool].erase(KeyOf(segments_, chunk)); }

  void ReleaseWholeSegments() {
    for (FreeSet& free : free_) {
      for (auto i = free.begin(); i != free.end();) {
        const int32_t chunk = ChunkOf(*i);
        if (!segments_.Whole(chunk)) {
          ++i;
          continue;
        }
        device_->Give(segments_[chunk].size, 1);
        segments_.Remove(chunk);
        i = free.erase(i);
      }
    }
  }

  PeerDevice* device_;
  Segments segments_;
  FreeSet free_[2];              // by pool
  std::vector<int32_t> chunks_;  // by request
};

}  // namespace

std::unique_ptr<PeerPolicy> MakePyTorch(PeerDevice* device) { return std::make_unique<PyTorch>(device); }

}  // namespace hotpack
