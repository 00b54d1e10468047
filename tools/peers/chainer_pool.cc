// The memory pool of Chainer (CuPy): the baseline of the paper (Sekiyama 2018, §2 and §5.1: "memory pools, which are sets of
// unused memory blocks"; §5.3: "When requested memory cannot be allocated due to insufficient free memory, the pool-based
// memory management system frees all unused memory blocks and allocates subsequent requested memory from the physical GPU
// memory"). What the paper leaves open is as in CuPy 2, which Chainer 3 uses, by its documentation (MemoryPool) and
// behaviour:
//   - sizes are rounded up to 512 bytes;
//   - a request gets the smallest free chunk of its stream that holds it, of equal ones the one freed last. What is left of
//     it stays in the pool as a chunk of its own;
//   - nothing fits: cudaMalloc of exactly the rounded size;
//   - a freed chunk is joined with free neighbours of the same allocation;
//   - cudaMalloc fails: chunks that are whole allocations are given back (cudaFree), and it is called once more.
#include <set>
#include <tuple>
#include <vector>

#include "tools/peers/policy.h"
#include "tools/peers/segments.h"

namespace hotpack {
namespace {

constexpr uint64_t kUnit = 512;

class ChainerPool : public PeerPolicy {
 public:
  explicit ChainerPool(PeerDevice* device) : device_(device) {}

  bool Allocate(uint32_t request, uint64_t bytes, uint32_t stream) override {
    const uint64_t size = (bytes + kUnit - 1) / kUnit * kUnit;
    int32_t chunk;
    auto found = free_.lower_bound({stream, size, 0, 0});
    if (found != free_.end() && segments_[std::get<3>(*found)].stream == stream) {
      chunk = std::get<3>(*found);
      free_.erase(found);
      if (segments_[chunk].size > size) Insert(segments_.Split(chunk, size));
    } else {
      if (!device_->Take(size, 1)) {
        FreeAllBlocks();
        if (!device_->Take(size, 1)) return false;
      }
      chunk = segments_.Add(size, stream, 0);
    }
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
  // Free chunks: stream, size, the last freed first, chunk.
  using Key = std::tuple<uint32_t, uint64_t, uint64_t, int32_t>;

  Key KeyOf(int32_t chunk) const {
    const Chunk& c = segments_[chunk];
    return {c.stream, c.size, ~c.stamp, chunk};
  }
  void Insert(int32_t chunk) {
    segments_[chunk].stamp = ++freed_;
    free_.insert(KeyOf(chunk));
  }
  void Erase(int32_t chunk) { free_.erase(KeyOf(chunk)); }

  void FreeAllBlocks() {
    for (auto i = free_.begin(); i != free_.end();) {
      const int32_t chunk = std::get<3>(*i);
      if (!segments_.Whole(chunk)) {
        ++i;
        continue;
      }
      device_->Give(segments_[chunk].size, 1);
      segments_.Remove(chunk);
      i = free_.erase(i);
    }
  }

  PeerDevice* device_;
  Segments segments_;
  std::set<Key> free_;
  std::vector<int32_t> chunks_;  // by request
  uint64_t freed_ = 0;
};

}  // namespace

std::unique_ptr<PeerPolicy> MakeChainerPool(PeerDevice* device) { return std::make_unique<ChainerPool>(device); }

}  // namespace hotpack
