#include "tools/formats/minimalloc_import.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "profiler/trace_file.h"
#include "tools/recording/recording_builder.h"

namespace hotpack {
namespace {

struct Edge {
  Clock clock;
  bool begins;
  uint64_t address;  // stands for the block and its interval
  uint64_t bytes;

  bool operator<(const Edge& other) const {
    return std::tie(clock, begins, address) < std::tie(other.clock, other.begins, other.address);
  }
};

}  // namespace

bool LooksLikeMinimalloc(std::string_view begin) {
  const std::string_view line = begin.substr(0, begin.find('\n'));
  const auto has = [&](const char* column) { return line.find(column) != std::string_view::npos; };
  return has("size") && (has("lower") || has("begin") || has("start")) && (has("upper") || has("end"));
}

absl::StatusOr<ImportedInstance> RecordingOf(const NamedInstance& named, const std::string& name) {
  ImportedInstance imported;
  imported.has_offsets = !named.offsets.empty();
  std::vector<Edge> edges;
  uint64_t next = 1;
  for (size_t i = 0; i < named.instance.blocks.size(); ++i) {
    const Block& block = named.instance.blocks[i];
    const auto bytes = static_cast<uint64_t>(block.size);
    if (bytes > kMaxRecordedBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": block ", named.ids.empty() ? std::to_string(i) : named.ids[i], " has ", bytes,
                       " bytes, more than the ", kMaxRecordedBytes, " of a recording"));
    }
    imported.has_alignments = imported.has_alignments || block.alignment != 1;
    imported.gaps += block.residency.size() - 1;
    for (const auto& interval : block.residency) {
      edges.push_back({interval.begin, true, next, bytes});
      edges.push_back({interval.end, false, next++, bytes});
    }
  }
  if (edges.empty()) return absl::InvalidArgumentError(absl::StrCat(name, ": there are no blocks in it"));
  std::sort(edges.begin(), edges.end());
  RecordingBuilder builder;
  builder.Mark(EventKind::kMark, 0);
  for (const Edge& edge : edges) {
    if (edge.begins) {
      builder.Allocate(edge.address, edge.bytes, {});
    } else {
      builder.Release(edge.address, edge.bytes, {});
    }
  }
  builder.Mark(EventKind::kMark, 0);
  imported.allocations = builder.allocations();
  imported.trace = builder.Finish();
  return imported;
}

}  // namespace hotpack
