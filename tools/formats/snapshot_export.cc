#include "tools/formats/snapshot_export.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "packer/pack.h"
#include "tools/formats/pickle_writer.h"
#include "tools/formats/snapshot_words.h"
#include "tools/recording/hot_iteration.h"

namespace hotpack {
namespace {

using namespace snapshot;

// The arena's address: similar to drivers' addresses, and exact in JavaScript's numbers.
constexpr int64_t kBase = int64_t{0x7f} << 40;
constexpr int64_t kPageBytes = int64_t{2} << 20;

class Exporter {
 public:
  Exporter(const Trace& trace, uint64_t began_ns, const TextSink& sink)
      : trace_(trace), began_us_(static_cast<int64_t>(began_ns / 1000)), writer_(sink) {}
  absl::Status Place(ExportedSnapshot* exported);
  absl::Status Write();

 private:
  struct Live {
    size_t block;
    int64_t requested;
  };
  void Segment();
  void Blocks();
  void Block(int64_t offset, int64_t size, int64_t requested);
  void History();
  void Entry(Word action, int64_t address, int64_t size, const Event& event);
  void Pair(Word key, int64_t value) { writer_.Key(kText[key]), writer_.Integer(value); }
  void Pair(std::string_view key, int64_t value) { writer_.Key(key), writer_.Integer(value); }
  void NoFrames() { writer_.Key("frames"), writer_.EmptyList(); }

  const Trace& trace_;
  const int64_t began_us_;
  PickleWriter writer_;
  Instance instance_;  // a block for each allocation, in order
  Placement placement_;
  int64_t total_ = 0;       // of the segment
  std::vector<Live> live_;  // at the end of the recording
};

absl::Status Exporter::Place(ExportedSnapshot* exported) {
  instance_ = WholeRecording(trace_);
  PackOptions options;
  options.algorithm = Algorithm::kBestFit;
  options.time_limit_ns = std::numeric_limits<int64_t>::max() / 4;  // microseconds a block: long enough to finish
  PackResult result = Pack(instance_, options);
  if (result.status != PackStatus::kOk) return absl::InvalidArgumentError(PackStatusText(result.status));
  placement_ = std::move(result.placement);
  total_ = RoundUp(placement_.height, kPageBytes);
  exported->allocations = instance_.blocks.size();
  exported->height = placement_.height;
  exported->lower_bound = result.lower_bound;
  absl::flat_hash_map<uint64_t, Live> live;
  size_t next = 0;
  for (const Event& event : trace_.events) {
    if (event.kind == EventKind::kAllocate) live[event.id] = {next++, static_cast<int64_t>(event.bytes)};
    if (event.kind == EventKind::kRelease) live.erase(event.id);
  }
  for (const auto& [id, block] : live) live_.push_back(block);
  std::sort(live_.begin(), live_.end(),
            [this](const Live& a, const Live& b) { return placement_.offsets[a.block] < placement_.offsets[b.block]; });
  return absl::OkStatus();
}

void Exporter::Block(int64_t offset, int64_t size, int64_t requested) {
  writer_.BeginDict();
  Pair(kAddress, kBase + offset);
  Pair(kSize, size);
  Pair(kRequestedSize, requested);
  writer_.Key(kText[kState]);
  writer_.Text(requested > 0 ? kText[kActiveAllocated] : std::string_view("inactive"));
  NoFrames();
  writer_.EndDict();
}

// Writes the segment without gaps: live blocks, and free ones between them.
void Exporter::Blocks() {
  int64_t end = 0;
  for (const Live& live : live_) {
    const int64_t offset = placement_.offsets[live.block], size = instance_.blocks[live.block].size;
    if (offset > end) Block(end, offset - end, 0);
    Block(offset, size, live.requested);
    end = offset + size;
  }
  if (end < total_) Block(end, total_ - end, 0);
}

void Exporter::Segment() {
  int64_t allocated = 0, requested = 0;
  for (const Live& live : live_) {
    allocated += instance_.blocks[live.block].size;
    requested += live.requested;
  }
  writer_.BeginDict();
  Pair(kDevice, 0);
  Pair(kAddress, kBase);
  Pair(kTotalSize, total_);
  Pair("allocated_size", allocated);
  Pair("active_size", allocated);
  Pair(kRequestedSize, requested);
  Pair(kStream, 0);
  writer_.Key("segment_type"), writer_.Text("large");
  writer_.Key("segment_pool_id"), writer_.ZeroPair();
  writer_.Key("is_expandable"), writer_.Bool(false);
  NoFrames();
  writer_.Key(kText[kBlocks]);
  writer_.BeginList();
  Blocks();
  writer_.EndList();
  writer_.EndDict();
}

void Exporter::Entry(Word action, int64_t address, int64_t size, const Event& event) {
  writer_.BeginDict();
  writer_.Key(kText[kAction]);
  writer_.Text(action == kSegments ? std::string_view("segment_alloc") : kText[action]);
  Pair(kAddr, address);
  Pair(kSize, size);
  Pair(kStream, event.stream);
  Pair(kTimeUs, began_us_ + static_cast<int64_t>(event.time_ns / 1000));
  NoFrames();
  writer_.Key("pool_id"), writer_.ZeroPair();
  if (action == kSnapshot) {
    const Word mark = event.kind == EventKind::kMark        ? kMarkStep
                      : event.kind == EventKind::kInterrupt ? kMarkInterrupt
                      : event.kind == EventKind::kExpect    ? kMarkExpect
                                                            : kMarkResume;
    writer_.Key(kText[kUserMetadata]), writer_.Text(kText[mark]);
  }
  writer_.EndDict();
}

void Exporter::History() {
  writer_.BeginList();
  if (total_ > 0) Entry(kSegments, kBase, total_, Event{});
  absl::flat_hash_map<uint64_t, size_t> block_of;
  size_t next = 0;
  for (const Event& event : trace_.events) {
    const auto bytes = static_cast<int64_t>(event.bytes);
    if (event.kind == EventKind::kAllocate) {
      block_of[event.id] = next;
      Entry(kAlloc, kBase + placement_.offsets[next++], bytes, event);
    } else if (event.kind == EventKind::kRelease) {
      const auto block = block_of.find(event.id);
      const int64_t address = kBase + placement_.offsets[block->second];
      // Adjacent entries: viewers merge them into one release.
      Entry(kFreeRequested, address, bytes, event);
      Entry(kFreeCompleted, address, bytes, event);
      block_of.erase(block);
    } else {
      Entry(kSnapshot, 0, 0, event);
    }
  }
  writer_.EndList();
}

absl::Status Exporter::Write() {
  writer_.BeginDict();
  writer_.Key(kText[kSegments]);
  writer_.BeginList();
  if (total_ > 0) Segment();
  writer_.EndList();
  writer_.Key(kText[kDeviceTraces]);
  writer_.BeginList();
  History();
  writer_.EndList();
  writer_.EndDict();
  return writer_.Finish();
}

}  // namespace

absl::Status WriteSnapshot(const Trace& trace, uint64_t began_ns, const TextSink& sink, ExportedSnapshot* exported) {
  Exporter exporter(trace, began_ns, sink);
  if (absl::Status status = exporter.Place(exported); !status.ok()) return status;
  return exporter.Write();
}

}  // namespace hotpack
