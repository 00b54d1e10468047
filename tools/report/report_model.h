// The packed hot iteration of a recording with all facts about its blocks: the data of the report and the SVG.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "packer/pack.h"
#include "packer/stream_edges.h"
#include "profiler/trace_file.h"
#include "tools/report/block_notes.h"
#include "tools/report/curves.h"
#include "tools/report/iterations.h"
#include "tools/report/sequence.h"
#include "tools/report/unplanned_load.h"

namespace hotpack {

enum class BlockKind : uint8_t {
  kPacked = 0,   // requested and released within the iteration
  kCarried = 1,  // live at the beginning of the cycle
  kKept = 2,     // of a whole recording: not released before its end
};

struct ReportBlock {
  uint64_t request = 0;  // its ordinal λ in the iteration, or in the recording
  Bytes asked = 0;       // the requested size, not rounded up
  uint32_t stream = 0;
  uint16_t thread = 0;
  BlockKind kind = BlockKind::kPacked;
  BlockNotes notes;  // ordinals in ReportModel::names
};

struct ReportModel {
  std::string what;     // in words, such as "the marked iteration with the highest live load, 306 requests"
  uint64_t period = 0;  // requests of one iteration; 0: none repeats, so all of the recording is packed
  uint64_t unroll = 1;  // iterations planned as one
  Instance instance;    // the clock counts requests; without a repeating iteration requests and releases
  PackResult packed;
  std::optional<StreamEdges> stream_edges;  // of the placement; nothing without blocks of several streams
  std::vector<ReportBlock> blocks;          // by block of the instance
  std::vector<std::string> names;
  std::vector<std::string> ids;  // of a packing instance; else empty
  PlacementCurves curves;
  UnplannedLoad unplanned;
  Bytes live_peak = 0;                        // of planned and unplanned blocks
  uint64_t unplanned_requests = 0;            // requests of the iteration that are served dynamically
  std::vector<RunIteration> iterations;       // empty if none repeats
  std::optional<IterationSequence> sequence;  // of marked iterations that differ
};

struct ReportModelOptions {
  // Of the packing, in logical time (packer/stop.h: WorkClock), so that the same recording has the same picture. One
  // pass of best-fit always runs, however long it takes.
  int64_t time_limit_ns = 1'000'000'000;
  bool avoid_stream_edges = true;  // false: the placement stays as it was packed
};

// Packs the iteration with the highest live load (FindLargestIteration), else the whole recording. Of several equal
// iterations, streams and notes come from the one with most notes. Errors: no requests, too many bytes (kOverflow).
// O(events) and the packing.
absl::StatusOr<ReportModel> MakeReportModel(const TraceFile& file, const ReportModelOptions& options);

// As above for a packing instance, whose blocks have no further facts.
absl::StatusOr<ReportModel> MakeReportModel(Instance instance, std::vector<std::string> ids,
                                            const ReportModelOptions& options);

}  // namespace hotpack
