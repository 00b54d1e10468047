#include "packer/stream_edges.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "packer/pack.h"

namespace hotpack {
namespace {

constexpr size_t kPlaces = 64;     // tried for one block
constexpr int kRounds = 4;         // over all blocks
constexpr int64_t kPackShare = 4;  // this part of the time limit is for the solve with other streams at the top

struct Range {
  Offset begin, end;
  bool Meets(const Range& other) const { return begin < other.end && other.begin < end; }
};

bool ResidentTogether(const Block& a, const Block& b) {
  for (const Residency& x : a.residency) {
    for (const Residency& y : b.residency) {
      if (x.begin < y.end && y.begin < x.end) return true;
    }
  }
  return false;
}

// Blocks at their offsets, in the order in which their uses begin. Knows the edges of each.
class Layout {
 public:
  Layout(const Instance& instance, const BlockStreams& streams) : streams_(streams), ranges_(streams.size()) {
    order_.resize(streams.size());
    position_.resize(streams.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&instance](int32_t a, int32_t b) {
      return instance.blocks[Index(a)].residency.back().begin < instance.blocks[Index(b)].residency.back().begin;
    });
    for (size_t i = 0; i < order_.size(); ++i) position_[Index(order_[i])] = i;
    for (const Block& block : instance.blocks) sizes_.push_back(block.size);
  }

  void Place(const std::vector<Offset>& offsets) {
    for (size_t i = 0; i < offsets.size(); ++i) Add(static_cast<int32_t>(i), offsets[i]);
  }
  std::vector<Offset> Offsets() const {
    std::vector<Offset> offsets;
    for (const size_t position : position_) offsets.push_back(ranges_[position].begin);
    return offsets;
  }
  Range RangeOf(int32_t block) const { return ranges_[position_[Index(block)]]; }
  void Add(int32_t block, Offset offset) { ranges_[position_[Index(block)]] = {offset, offset + sizes_[Index(block)]}; }
  void Remove(int32_t block) { ranges_[position_[Index(block)]] = {0, 0}; }

  // Returns the number of other streams among the last users of the block's addresses.
  int64_t Edges(int32_t block, StopCheck* stop) {
    const uint16_t own = streams_[Index(block)];
    if (own == kAnyStream) return 0;
    absl::InlinedVector<uint16_t, 8> others;
    ForEachNeighbour<kBefore>(block, stop, [&](int32_t user) {
      const uint16_t stream = streams_[Index(user)];
      if (stream == own || stream == kAnyStream) return;
      if (std::find(others.begin(), others.end(), stream) == others.end()) others.push_back(stream);
    });
    return static_cast<int64_t>(others.size());
  }

  // Returns those who use addresses of `block` next, but not the block itself.
  absl::InlinedVector<int32_t, 8> Next(int32_t block, StopCheck* stop) {
    absl::InlinedVector<int32_t, 8> users;
    ForEachNeighbour<kAfter>(block, stop, [&](int32_t user) {
      if (user != block) users.push_back(user);
    });
    return users;
  }

  template <typename Blocks>
  int64_t EdgesOf(const Blocks& blocks, StopCheck* stop) {
    int64_t edges = 0;
    for (const int32_t block : blocks) edges += Edges(block, stop);
    return edges;
  }
  int64_t AllEdges(StopCheck* stop) { return EdgesOf(order_, stop); }

 private:
  enum Side { kBefore, kAfter };

  static size_t Index(int32_t block) { return static_cast<size_t>(block); }

  // Calls visit(user) for each block that used addresses of `block` last before it, or uses them next, on the cycle.
  // May be itself. Goes from block to block through time until all addresses are covered.
  template <Side kSide, typename Visit>
  void ForEachNeighbour(int32_t block, StopCheck* stop, Visit visit) {
    const size_t n = ranges_.size(), home = position_[Index(block)];
    open_.assign(1, ranges_[home]);
    size_t at = home, steps = 0;
    do {
      ++steps;
      at = kSide == kBefore ? (at == 0 ? n : at) - 1 : (at + 1 == n ? 0 : at + 1);
      if (Cover(ranges_[at])) visit(order_[at]);
    } while (at != home && !open_.empty());
    (*stop)(static_cast<int64_t>(steps));
  }

  // Takes `range` out of what is open. Returns whether anything of it was.
  bool Cover(const Range& range) {
    bool any = false;
    for (size_t i = 0; i < open_.size();) {
      const Range open = open_[i];
      if (!open.Meets(range)) {
        ++i;
        continue;
      }
      any = true;
      open_[i] = open_.back();
      open_.pop_back();
      if (open.begin < range.begin) open_.push_back({open.begin, range.begin});
      if (range.end < open.end) open_.push_back({range.end, open.end});
    }
    return any;
  }

  const BlockStreams& streams_;
  std::vector<Bytes> sizes_;             // by block
  std::vector<int32_t> order_;           // blocks by the beginning of their use
  std::vector<size_t> position_;         // by block, in order_
  std::vector<Range> ranges_;            // by position; empty: removed
  absl::InlinedVector<Range, 16> open_;  // scratch of ForEachNeighbour
};

// Returns the offsets below `height` at the ends of the gaps that are free while `block` is resident. It is removed.
std::vector<Offset> FreePlaces(const Instance& instance, const Layout& layout, int32_t block, Bytes height,
                               StopCheck* stop) {
  const Block& moved = instance.blocks[static_cast<size_t>(block)];
  std::vector<Range> taken;
  for (size_t i = 0; i < instance.blocks.size(); ++i) {
    const auto other = static_cast<int32_t>(i);
    if (other != block && ResidentTogether(moved, instance.blocks[i])) taken.push_back(layout.RangeOf(other));
  }
  (*stop)(static_cast<int64_t>(2 * instance.blocks.size()));
  taken.push_back({height, height});
  std::sort(taken.begin(), taken.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Offset> places;
  Offset top = 0;
  for (const Range& range : taken) {
    const Offset low = RoundUp(top, moved.alignment);
    const Offset high = (range.begin - moved.size) / moved.alignment * moved.alignment;
    if (range.begin >= moved.size && low <= high) {
      places.push_back(low);
      if (high != low) places.push_back(high);
    }
    top = std::max(top, range.end);
    if (places.size() >= kPlaces) break;
  }
  return places;
}

// Moves blocks while that makes fewer edges. Returns the number of edges that are left.
int64_t MoveBlocks(const Instance& instance, Bytes height, Layout* layout, StopCheck* stop) {
  int64_t edges = layout->AllEdges(stop);
  for (int round = 0; round < kRounds && edges > 0; ++round) {
    const int64_t before = edges;
    for (size_t i = 0; i < instance.blocks.size() && edges > 0; ++i) {
      if (stop->Now()) return edges;
      if (instance.blocks[i].pinned != kNotPinned) continue;
      const auto block = static_cast<int32_t>(i);
      const Offset home = layout->RangeOf(block).begin;
      // Who follows here has other predecessors once the block is gone.
      const auto followers = layout->Next(block, stop);
      const int64_t with = layout->Edges(block, stop) + layout->EdgesOf(followers, stop);
      if (with == 0) continue;
      layout->Remove(block);
      int64_t least = with - layout->EdgesOf(followers, stop);  // what the block adds where it is
      const int64_t here = least;
      Offset best = home;
      if (least > 0) {
        for (const Offset place : FreePlaces(instance, *layout, block, height, stop)) {
          layout->Add(block, place);
          const auto next = layout->Next(block, stop);
          int64_t added = layout->Edges(block, stop) + layout->EdgesOf(next, stop);
          layout->Remove(block);
          added -= layout->EdgesOf(next, stop);
          if (added >= least) continue;
          least = added;
          best = place;
          if (least <= 0) break;
        }
      }
      layout->Add(block, best);
      edges += least - here;
    }
    if (edges == before) break;
  }
  return edges;
}

// Returns the stream whose blocks take up most bytes times ticks.
uint16_t LargestStream(const Instance& instance, const BlockStreams& streams) {
  std::map<uint16_t, double> areas;
  for (size_t i = 0; i < streams.size(); ++i) {
    if (streams[i] == kAnyStream) continue;
    for (const Residency& part : instance.blocks[i].residency) {
      areas[streams[i]] += static_cast<double>(instance.blocks[i].size) * static_cast<double>(part.end - part.begin);
    }
  }
  uint16_t largest = 0;
  double most = -1;
  for (const auto& [stream, area] : areas) {
    if (area > most) std::tie(largest, most) = std::pair(stream, area);
  }
  return largest;
}

// Packs the blocks of all streams but the largest, turns them upside down to the top of `height`, pins them there, and
// packs the others around them. Returns a placement not higher than `height`, or one without offsets.
Placement PackFromBothEnds(const Instance& instance, const BlockStreams& streams, Bytes height, PackOptions options) {
  const uint16_t largest = LargestStream(instance, streams);
  Instance others;
  std::vector<size_t> index;
  for (size_t i = 0; i < instance.blocks.size(); ++i) {
    const Block& block = instance.blocks[i];
    if (block.pinned != kNotPinned) return {};  // they may lie anywhere
    if (streams[i] == largest) continue;
    others.blocks.push_back(block);
    index.push_back(i);
  }
  const int64_t time_limit_ns = options.time_limit_ns;
  options.time_limit_ns = time_limit_ns / 4;
  const PackResult top = Pack(others, options);
  if (top.status != PackStatus::kOk || top.placement.height > height) return {};
  Instance pinned = instance;
  for (size_t k = 0; k < index.size(); ++k) {
    Block& block = pinned.blocks[index[k]];
    const Offset offset = height - top.placement.offsets[k] - block.size;
    block.pinned = offset / block.alignment * block.alignment;
    if (block.pinned != offset) return {};  // alignments that do not divide the height
  }
  options.time_limit_ns = time_limit_ns - options.time_limit_ns;
  options.target_height = height;
  PackResult all = Pack(pinned, options);
  if (all.status != PackStatus::kOk || all.placement.height > height) return {};
  return std::move(all.placement);
}

Bytes Height(const Instance& instance, const std::vector<Offset>& offsets) {
  Bytes height = 0;
  for (size_t i = 0; i < offsets.size(); ++i) height = std::max(height, offsets[i] + instance.blocks[i].size);
  return height;
}

}  // namespace

int64_t CountStreamEdges(const Instance& instance, const Placement& placement, const BlockStreams& streams) {
  StopCheck stop(INT64_MAX, nullptr);
  Layout layout(instance, streams);
  layout.Place(placement.offsets);
  return layout.AllEdges(&stop);
}

bool HasSeveralStreams(const BlockStreams& streams) {
  uint16_t first = kAnyStream;
  for (const uint16_t stream : streams) {
    if (stream == kAnyStream || stream == first) continue;
    if (first != kAnyStream) return true;
    first = stream;
  }
  return false;
}

Placement AvoidStreamEdges(const Instance& instance, const Placement& start, const BlockStreams& streams, Bytes height,
                           int64_t time_limit_ns, const std::atomic<bool>* cancel, WorkClock* clock) {
  const int64_t deadline = NanosecondsOn(clock) + time_limit_ns;
  Layout layout(instance, streams);
  layout.Place(start.offsets);
  std::vector<Offset> best;
  int64_t fewest;
  {
    StopCheck stop(deadline, cancel, clock);
    fewest = layout.AllEdges(&stop);
  }
  if (fewest == 0) return start;
  PackOptions options;
  options.time_limit_ns = time_limit_ns / kPackShare;
  options.cancel = cancel;
  options.clock = clock;
  const Placement apart = PackFromBothEnds(instance, streams, height, options);
  StopCheck stop(deadline, cancel, clock);
  for (const Placement* from : {&apart, &start}) {
    if (from->offsets.empty()) continue;
    layout.Place(from->offsets);
    const int64_t edges = MoveBlocks(instance, height, &layout, &stop);
    if (edges >= fewest) continue;
    fewest = edges;
    best = layout.Offsets();
  }
  if (best.empty()) return start;
  Placement placement;
  placement.height = Height(instance, best);
  placement.offsets = std::move(best);
  return placement;
}

StreamEdges AvoidStreamEdgesInPlace(const Instance& instance, const BlockStreams& streams, int64_t time_limit_ns,
                                    const std::atomic<bool>* cancel, WorkClock* clock, Placement* placement) {
  StreamEdges edges;
  edges.before = edges.after = CountStreamEdges(instance, *placement, streams);
  if (edges.before == 0) return edges;
  Placement other = AvoidStreamEdges(instance, *placement, streams, placement->height, time_limit_ns, cancel, clock);
  const int64_t count = CountStreamEdges(instance, other, streams);
  if (count >= edges.before) return edges;
  edges.after = count;
  *placement = std::move(other);
  return edges;
}

}  // namespace hotpack
