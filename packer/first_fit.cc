#include "packer/first_fit.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace hotpack {
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

// Returns a mask: bit i says that entry group + i is resident together with one of the spans. The form lets the
// compiler compare four entries at a time. Positions beyond the chunk's entries are compared, too; their bits are
// meaningless.
uint32_t FirstFit::MeetingInGroup(const Chunk& chunk, int group, std::span<const Span> spans) {
  const int32_t* const begins = chunk.begins + group;
  const int32_t* const ends = chunk.ends + group;
  int32_t meets[kGroup] = {};
  for (const Span& span : spans) {
    for (int i = 0; i < kGroup; ++i) meets[i] |= -static_cast<int32_t>((begins[i] < span.end) & (span.begin < ends[i]));
  }
  uint32_t bits = 0;
  for (int i = 0; i < kGroup; ++i) bits |= static_cast<uint32_t>(meets[i]) & (uint32_t{1} << i);
  return bits;
}

// Goes up through the placed blocks in offset order and jumps over each that collides, until a gap is high enough.
Offset FirstFit::LowestFree(int32_t block, StopCheck* stop) const {
  const Bytes size = timeline_.sizes[block];
  const Bytes alignment = timeline_.alignments[block];
  const std::span<const Span> spans = SpansOf(block);
  Offset offset = 0;
  for (int index : chunk_order_) {
    const Chunk& chunk = chunks_[index];
    if (chunk.offsets[0] >= offset + size) break;
    if (chunk.max_top <= offset) continue;
    (*stop)(Chunk::kCapacity);
    for (int group = 0; group < chunk.count; group += kGroup) {
      for (uint32_t meeting = MeetingInGroup(chunk, group, spans); meeting != 0; meeting &= meeting - 1) {
        const int i = group + std::countr_zero(meeting);
        if (i >= chunk.count) break;
        if (chunk.offsets[i] >= offset + size) return offset;
        if (chunk.tops[i] > offset) offset = RoundUp(chunk.tops[i], alignment);
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

// Moves the upper half of a full chunk to an empty one.
void FirstFit::Split(Chunk* lower, Chunk* upper) {
  constexpr int kHalf = Chunk::kCapacity / 2;
  const auto move = [&](auto& from, auto& to) { std::copy(from + kHalf, from + Chunk::kCapacity, to); };
  move(lower->begins, upper->begins);
  move(lower->ends, upper->ends);
  move(lower->offsets, upper->offsets);
  move(lower->tops, upper->tops);
  lower->count = kHalf;
  upper->count = Chunk::kCapacity - kHalf;
  for (Chunk* half : {lower, upper}) half->max_top = *std::max_element(half->tops, half->tops + half->count);
}

void FirstFit::InsertEntry(const Entry& entry) {
  if (chunk_order_.empty()) chunk_order_.push_back(NewChunk());
  // The last chunk that begins at or below the entry; if there is none, the first one.
  auto at = std::upper_bound(chunk_order_.begin(), chunk_order_.end(), entry.offset, [&](Offset offset, int index) {
    return chunks_[index].count > 0 && offset < chunks_[index].offsets[0];
  });
  if (at != chunk_order_.begin()) --at;
  if (chunks_[*at].count == Chunk::kCapacity) {
    const int lower_index = *at;
    const int upper_index = NewChunk();
    at = chunk_order_.insert(at + 1, upper_index) - 1;
    Split(&chunks_[lower_index], &chunks_[upper_index]);
    if (entry.offset >= chunks_[upper_index].offsets[0]) ++at;
  }
  Chunk& chunk = chunks_[*at];
  const auto place = std::upper_bound(chunk.offsets, chunk.offsets + chunk.count, entry.offset) - chunk.offsets;
  const auto insert = [&](auto& array, auto value) {
    std::copy_backward(array + place, array + chunk.count, array + chunk.count + 1);
    array[place] = value;
  };
  insert(chunk.begins, entry.span.begin);
  insert(chunk.ends, entry.span.end);
  insert(chunk.offsets, entry.offset);
  insert(chunk.tops, entry.top);
  ++chunk.count;
  chunk.max_top = std::max(chunk.max_top, entry.top);
}

}  // namespace hotpack
