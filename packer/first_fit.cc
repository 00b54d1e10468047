#include "packer/first_fit.h"

#include <algorithm>

namespace hotpack {
namespace {

Offset RoundUp(Offset offset, Bytes alignment) {
  const Offset rest = offset % alignment;
  return rest == 0 ? offset : offset + (alignment - rest);
}

}  // namespace

FirstFit::FirstFit(const Timeline& timeline) : timeline_(timeline) {
  span_starts_.reserve(timeline.sizes.size() + 1);
  spans_.reserve(timeline.arcs.size());
  span_starts_.push_back(0);
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    for (const Arc& arc : timeline.arcs_of(block)) {
      spans_.push_back({arc.begin, std::min(arc.end, timeline.slots)});
      if (arc.end > timeline.slots) spans_.push_back({0, arc.end - timeline.slots});
    }
    span_starts_.push_back(static_cast<int32_t>(spans_.size()));
    if (timeline.pins[block] != kNotPinned) pinned_.push_back(block);
  }
}

bool FirstFit::Place(std::span<const int32_t> order, Bytes highest, StopCheck* stop, std::vector<Offset>* offsets,
                     Bytes* height) {
  offsets->assign(timeline_.sizes.size(), 0);
  chunks_used_ = 0;
  chunk_order_.clear();
  *height = 0;
  const auto put = [&](int32_t block, Offset offset) {
    const Offset top = offset + timeline_.sizes[block];
    if (top > highest) return false;
    (*offsets)[block] = offset;
    *height = std::max(*height, top);
    Insert(block, offset);
    return true;
  };
  for (int32_t block : pinned_) {
    if (!put(block, timeline_.pins[block])) return false;
  }
  for (int32_t block : order) {
    if (timeline_.pins[block] != kNotPinned) continue;
    const Offset offset = LowestFree(block, stop);
    if ((*stop)(16) || !put(block, offset)) return false;
  }
  return true;
}

// Goes up through the placed blocks in offset order and jumps over each that collides, until a gap is high enough.
Offset FirstFit::LowestFree(int32_t block, StopCheck* stop) const {
  const Bytes size = timeline_.sizes[block];
  const Bytes alignment = timeline_.alignments[block];
  const std::span<const Span> spans = SpansOf(block);
  Offset offset = 0;
  for (int index : chunk_order_) {
    const Chunk& chunk = chunks_[index];
    if (chunk.entries[0].offset >= offset + size) break;
    if (chunk.max_top <= offset) continue;
    (*stop)(Chunk::kCapacity);
    for (int i = 0; i < chunk.count; ++i) {
      const Entry& entry = chunk.entries[i];
      if (entry.offset >= offset + size) return offset;
      if (entry.top <= offset) continue;
      for (const Span& span : spans) {
        if (entry.span.begin < span.end && span.begin < entry.span.end) {
          offset = RoundUp(entry.top, alignment);
          break;
        }
      }
    }
  }
  return offset;
}

void FirstFit::Insert(int32_t block, Offset offset) {
  for (const Span& span : SpansOf(block)) InsertEntry({offset, offset + timeline_.sizes[block], span});
}

int FirstFit::NewChunk() {
  if (chunks_used_ == static_cast<int>(chunks_.size())) chunks_.emplace_back();
  Chunk& chunk = chunks_[chunks_used_];
  chunk.count = 0;
  chunk.max_top = 0;
  return chunks_used_++;
}

void FirstFit::InsertEntry(const Entry& entry) {
  if (chunk_order_.empty()) chunk_order_.push_back(NewChunk());
  // The last chunk that begins at or below the entry, else the first one.
  auto at = std::upper_bound(chunk_order_.begin(), chunk_order_.end(), entry.offset, [&](Offset offset, int index) {
    return chunks_[index].count > 0 && offset < chunks_[index].entries[0].offset;
  });
  if (at != chunk_order_.begin()) --at;
  if (chunks_[*at].count == Chunk::kCapacity) {
    const int lower_index = *at;
    const int upper_index = NewChunk();
    at = chunk_order_.insert(at + 1, upper_index) - 1;
    Chunk& lower = chunks_[lower_index];
    Chunk& upper = chunks_[upper_index];
    constexpr int kHalf = Chunk::kCapacity / 2;
    std::copy(lower.entries + kHalf, lower.entries + Chunk::kCapacity, upper.entries);
    lower.count = kHalf;
    upper.count = Chunk::kCapacity - kHalf;
    for (Chunk* half : {&lower, &upper}) {
      half->max_top = 0;
      for (int i = 0; i < half->count; ++i) half->max_top = std::max(half->max_top, half->entries[i].top);
    }
    if (entry.offset >= upper.entries[0].offset) ++at;
  }
  Chunk& chunk = chunks_[*at];
  Entry* const end = chunk.entries + chunk.count;
  Entry* const place = std::upper_bound(chunk.entries, end, entry.offset,
                                        [](Offset offset, const Entry& other) { return offset < other.offset; });
  std::copy_backward(place, end, end + 1);
  *place = entry;
  ++chunk.count;
  chunk.max_top = std::max(chunk.max_top, entry.top);
}

}  // namespace hotpack
