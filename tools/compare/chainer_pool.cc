// The memory pool of Chainer (CuPy), the baseline of the paper (Sekiyama 2018). §2 and §5.1: "memory pools, which are
// sets of unused memory blocks". §5.3: "When requested memory cannot be allocated due to insufficient free memory, the
// pool-based memory management system frees all unused memory blocks and allocates subsequent requested memory from the
// physical GPU memory". The rest is as in CuPy 2, which Chainer 3 uses, by its documentation (MemoryPool) and
// behaviour:
//   - Sizes are rounded up to 512 bytes.
//   - A request gets the smallest free chunk of its stream that holds it, of equal ones the one freed last. The rest of
//     the chunk stays in the pool as a chunk of its own.
//   - If nothing fits: cudaMalloc of exactly the rounded size.
//   - A freed chunk is joined with free neighbours of the same allocation.
//   - If cudaMalloc fails: chunks that are whole allocations are returned (cudaFree), and it is called once more.
#include "tools/compare/segment_policy.h"

namespace hotpack {
namespace {

constexpr uint64_t kUnit = 512;

class ChainerPool : public SegmentPolicy {
 public:
  using SegmentPolicy::SegmentPolicy;

  bool Allocate(uint32_t request, uint64_t bytes, uint32_t stream) override {
    const uint64_t size = (bytes + kUnit - 1) / kUnit * kUnit;
    int32_t chunk = TakeFirst(&free_, stream, size);
    if (chunk >= 0) {
      if (segments_[chunk].size > size) Insert(segments_.Split(chunk, size));
    } else {
      if (!device_->Take(size, 1)) {
        GiveBackWhole(&free_);
        if (!device_->Take(size, 1)) return false;
      }
      chunk = segments_.Add(size, stream, 0);
    }
    Occupy(chunk, request);
    return true;
  }

 private:
  // Of equal ones the last freed first.
  Key KeyOf(int32_t chunk) const {
    const Chunk& c = segments_[chunk];
    return {c.stream, c.size, ~c.stamp, chunk};
  }
  void Insert(int32_t chunk) override {
    segments_[chunk].stamp = ++freed_;
    free_.insert(KeyOf(chunk));
  }
  void Erase(int32_t chunk) override { free_.erase(KeyOf(chunk)); }

  FreeSet free_;
  uint64_t freed_ = 0;
};

}  // namespace

std::unique_ptr<PeerPolicy> MakeChainerPool(ModelDevice* device) { return std::make_unique<ChainerPool>(device); }

}  // namespace hotpack
