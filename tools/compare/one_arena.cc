// One arena, served online. Each request gets the smallest (best fit) or the lowest (first fit) free range that holds
// it. Adjacent free ranges are joined. If nothing fits, the arena grows at its end by the missing bytes. It never
// shrinks.
//
//   offset ▲      grows by the missing bytes of the free range at the end
//          │  ╌╌╌╌╌╌╌╌╌╌╌╌
//          │  ┌──────────┐ ◄ end
//          │  │ free     │
//          │  ├──────────┤
//          │  │ live     │
//
// Source of both rules: Knuth, The Art of Computer Programming, vol. 1, §2.5. ONNX Runtime's planner of memory patterns
// places requests like this, in their order, when it lays out the pattern of a run.
//
// Sizes are rounded up to 512 bytes. Streams share the arena: the simulation assumes that reuse is ordered, at no cost.
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tools/compare/policy.h"

namespace hotpack {
namespace {

constexpr uint64_t kUnit = 512;

class OneArena : public PeerPolicy {
 public:
  OneArena(ModelDevice* device, bool best_fit) : device_(device), best_fit_(best_fit) {}

  bool Allocate(uint32_t request, uint64_t bytes, uint32_t) override {
    const uint64_t size = (bytes + kUnit - 1) / kUnit * kUnit;
    uint64_t address;
    if (!FindFree(size, &address)) {
      // The free range at the arena's end becomes the first part of the block.
      auto last = free_.empty() ? free_.end() : std::prev(free_.end());
      const bool touches = last != free_.end() && last->first + last->second == end_;
      address = touches ? last->first : end_;
      if (!device_->Take(address + size - end_, 1)) return false;
      if (touches) Remove(address, last->second);
      end_ = address + size;
    }
    if (blocks_.size() <= request) blocks_.resize(request + 1);
    blocks_[request] = {address, size};
    return true;
  }

  void Release(uint32_t request) override {
    auto [address, size] = blocks_[request];
    auto next = free_.lower_bound(address);
    if (next != free_.end() && next->first == address + size) {
      size += next->second;
      Remove(next->first, next->second);
      next = free_.lower_bound(address);
    }
    if (next != free_.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == address) {
        address = before->first;
        size += before->second;
        Remove(before->first, before->second);
      }
    }
    Add(address, size);
  }

  uint64_t AddressOf(uint32_t request) const override { return blocks_[request].first; }

 private:
  // Takes `size` bytes from the beginning of a free range, if one holds them.
  bool FindFree(uint64_t size, uint64_t* address) {
    uint64_t found_size = 0;
    if (best_fit_) {
      auto found = by_size_.lower_bound({size, 0});
      if (found == by_size_.end()) return false;
      *address = found->second;
      found_size = found->first;
    } else {
      auto found = free_.begin();
      while (found != free_.end() && found->second < size) ++found;
      if (found == free_.end()) return false;
      *address = found->first;
      found_size = found->second;
    }
    Remove(*address, found_size);
    if (found_size > size) Add(*address + size, found_size - size);
    return true;
  }

  void Add(uint64_t address, uint64_t size) {
    free_[address] = size;
    by_size_.insert({size, address});
  }
  void Remove(uint64_t address, uint64_t size) {
    by_size_.erase({size, address});
    free_.erase(address);
  }

  ModelDevice* device_;
  const bool best_fit_;
  std::map<uint64_t, uint64_t> free_;                  // address → size; no two are adjacent
  std::set<std::pair<uint64_t, uint64_t>> by_size_;    // the same: size, address
  std::vector<std::pair<uint64_t, uint64_t>> blocks_;  // by request: address, size
  uint64_t end_ = 0;
};

}  // namespace

std::unique_ptr<PeerPolicy> MakeOneArena(ModelDevice* device, bool best_fit) {
  return std::make_unique<OneArena>(device, best_fit);
}

}  // namespace hotpack
