#include "runtime/engine/zone_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <type_traits>

namespace hotpack {

static_assert(std::is_trivially_destructible_v<ZoneBlock>);

// Mapped, not allocated, as the history's rings are: untouched pages cost nothing.
void ZoneBlocks::Open(const AddressRange& addresses) {
  Close();
  size_t words[kMaxLevels] = {}, all = 0;
  int levels = 0;
  // One more than the last block's: Below looks at the bit of its end.
  for (uint64_t bits = addresses.bytes / kBlockUnit + 1; levels == 0 || bits > 1; ++levels) {
    bits = words[levels] = bits / 64 + 1;
    all += words[levels];
    if (levels + 1 == kMaxLevels) bits = 1;
  }
  void* const memory =
      mmap(nullptr, all * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mapped_bytes_ = all * sizeof(uint64_t);
  auto* next = static_cast<uint64_t*>(memory);
  for (int level = 0; level < levels; ++level) {
    bits_[level] = next;
    next += words[level];
  }
  levels_ = levels;
  base_ = addresses.begin;
  addresses_ = addresses.bytes;
}

void ZoneBlocks::Close() {
  for (ZoneBlock* block = ends_.above; block != &ends_;) {
    ZoneBlock* const above = block->above;
    nodes_->deallocate(block, sizeof(ZoneBlock), alignof(ZoneBlock));
    block = above;
  }
  while (spare_ != nullptr) {
    ZoneBlock* const next = spare_->chained;
    nodes_->deallocate(spare_, sizeof(ZoneBlock), alignof(ZoneBlock));
    spare_ = next;
  }
  Unlink();
  buckets_.clear();
  size_ = 0;
  if (levels_ > 0) munmap(bits_[0], mapped_bytes_);
  levels_ = 0;
  base_ = addresses_ = 0;
}

void ZoneBlocks::Prepare() {
  constexpr int kSpare = 64;
  if (spare_ == nullptr) {
    for (int i = 0; i < kSpare; ++i) {
      auto* const block = new (nodes_->allocate(sizeof(ZoneBlock), alignof(ZoneBlock))) ZoneBlock;
      block->chained = spare_;
      spare_ = block;
    }
  }
  if (size_ >= buckets_.size()) GrowBuckets();
}

void ZoneBlocks::GrowBuckets() {
  std::vector<ZoneBlock*> buckets(std::max<size_t>(64, 2 * buckets_.size()));
  buckets_.swap(buckets);
  bucket_shift_ = 64 - std::countr_zero(buckets_.size());
  for (ZoneBlock* block = ends_.above; block != &ends_; block = block->above) {
    ZoneBlock** const bucket = &buckets_[BucketOf(block->begin)];
    block->chained = *bucket;
    *bucket = block;
  }
}

}  // namespace hotpack
