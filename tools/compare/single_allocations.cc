// One cudaMalloc per request, one cudaFree per release. Nothing is cached, so only live memory is reserved, and every
// request is a driver call. The paper's "naive" allocation (Sekiyama 2018, §5.1) does the same.
//
// Sizes are rounded up to 512 bytes, as in every figure called "live". The driver's own granularity is not added: the
// documentation promises an alignment of cudaMalloc's addresses, and a granularity only for cuMemCreate.
#include <vector>

#include "tools/compare/policy.h"

namespace hotpack {
namespace {

constexpr uint64_t kUnit = 512;

class SingleAllocations : public PeerPolicy {
 public:
  explicit SingleAllocations(ModelDevice* device) : device_(device) {}

  bool Allocate(uint32_t request, uint64_t bytes, uint32_t) override {
    const uint64_t size = (bytes + kUnit - 1) / kUnit * kUnit;
    if (!device_->Take(size, 1)) return false;
    if (blocks_.size() <= request) blocks_.resize(request + 1);
    blocks_[request] = {next_address_, size};
    next_address_ += size;
    return true;
  }

  void Release(uint32_t request) override { device_->Give(blocks_[request].size, 1, 1); }
  uint64_t AddressOf(uint32_t request) const override { return blocks_[request].address; }

 private:
  struct Block {
    uint64_t address = 0, size = 0;
  };
  ModelDevice* device_;
  std::vector<Block> blocks_;
  uint64_t next_address_ = 0;  // never used twice
};

}  // namespace

std::unique_ptr<PeerPolicy> MakeSingleAllocations(ModelDevice* device) {
  return std::make_unique<SingleAllocations>(device);
}

}  // namespace hotpack
