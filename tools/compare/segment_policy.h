// The common part of policies with segments, independent of how they choose among free chunks.
#pragma once

#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "tools/compare/policy.h"
#include "tools/compare/segments.h"

namespace hotpack {

class SegmentPolicy : public PeerPolicy {
 public:
  explicit SegmentPolicy(ModelDevice* device) : device_(device) {}

  // The block becomes a free chunk, joined with its free neighbours.
  void Release(uint32_t request) override {
    segments_[chunks_[request]].live = false;
    Insert(Join(chunks_[request]));
  }
  uint64_t AddressOf(uint32_t request) const override { return segments_[chunks_[request]].address; }

 protected:
  // Adds a free chunk to those that the policy chooses from, or removes it.
  virtual void Insert(int32_t chunk) = 0;
  virtual void Erase(int32_t chunk) = 0;

  // Makes a chunk that is in no free set the request's block.
  void Occupy(int32_t chunk, uint32_t request) {
    segments_[chunk].live = true;
    if (chunks_.size() <= request) chunks_.resize(request + 1, -1);
    chunks_[request] = chunk;
  }

  // Joins `chunk`, which is in no free set, with its free neighbours if they are mapped like it. Returns the joined
  // chunk.
  int32_t Join(int32_t chunk) {
    const auto joins = [this, mapped = segments_[chunk].mapped](int32_t neighbour) {
      return neighbour >= 0 && !segments_[neighbour].live && segments_[neighbour].mapped == mapped;
    };
    const int32_t next = segments_[chunk].next, prev = segments_[chunk].prev;
    if (joins(next)) {
      Erase(next);
      segments_.JoinNext(chunk);
    }
    if (!joins(prev)) return chunk;
    Erase(prev);
    segments_.JoinNext(prev);
    return prev;
  }

  // Free chunks in the order of choice: stream, size, the tie-breaker, chunk.
  using Key = std::tuple<uint32_t, uint64_t, uint64_t, int32_t>;
  using FreeSet = std::set<Key>;
  static int32_t ChunkOf(const Key& key) { return std::get<3>(key); }

  // Removes from `free` the stream's first chunk that holds `size` bytes, and returns it; -1: there is none.
  static int32_t TakeFirst(FreeSet* free, uint32_t stream, uint64_t size) {
    const auto found = free->lower_bound({stream, size, 0, 0});
    if (found == free->end() || std::get<0>(*found) != stream) return -1;
    const int32_t chunk = ChunkOf(*found);
    free->erase(found);
    return chunk;
  }

  // Returns the free chunks that are whole segments to the device, each by one call. cudaFree waits for the device.
  void GiveBackWhole(FreeSet* free) {
    std::erase_if(*free, [this](const Key& key) {
      const int32_t chunk = ChunkOf(key);
      if (!segments_.Whole(chunk)) return false;
      device_->Give(segments_[chunk].size, 1, 1);
      segments_.Remove(chunk);
      return true;
    });
  }

  ModelDevice* const device_;
  Segments segments_;

 private:
  std::vector<int32_t> chunks_;  // by request
};

}  // namespace hotpack
