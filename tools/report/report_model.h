// The packed hot iteration of a recording with all that is known of its blocks: what the report and the SVG draw.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "packer/pack.h"
#include "profiler/trace_file.h"
#include "tools/report/block_notes.h"
#include "tools/report/curves.h"
#include "tools/report/iterations.h"
#include "tools/report/unplanned_load.h"

namespace hotpack {

enum class BlockKind : uint8_t {
  kPacked = 0,   // asked for and released within the iteration
  kCarried = 1,  // live where the cycle begins
  kKept = 2,     // of a whole recording: not released before its end
};

struct PictureBlock {
  uint64_t request = 0;  // λ: its ordinal in the iteration, or in the recording
  Bytes asked = 0;       // the size before it was rounded up
  uint32_t stream = 0;
  uint16_t thread = 0;
  BlockKind kind = BlockKind::kPacked;
  BlockNotes notes;  // ordinals in ReportModel::names
};

struct ReportModel {
  std::string what;     // in words, such as "the marked iteration with the highest live load, 306 requests"
  uint64_t period = 0;  // requests of one iteration; 0: none repeats, so all of the recording is packed
  uint64_t unroll = 1;  // iterations that are planned as one
  Instance instance;    // the clock counts requests; where no iteration repeats, requests and releases
  PackResult packed;
  std::vector<PictureBlock> blocks;  // i is the instance's block i
  std::vector<std::string> names;
  std::vector<std::string> ids;  // of a packing instance; else empty
  PlacementCurves curves;
  UnplannedLoad unplanned;
  Bytes live_peak = 0;                   // of the plan's blocks and those beside it
  uint64_t unplanned_requests = 0;       // of the iteration itself, served dynamically
  std::vector<RunIteration> iterations;  // empty where none repeats
};

struct PictureOptions {
  // For the packing, in logical time (packer/stop.h: WorkClock), so that the same recording has the same picture; one
  // pass of best-fit is made however long it takes.
  int64_t time_limit_ns = 1'000'000'000;
};

// Packs the iteration with the highest live load (FindLargestIteration), else all. Where several
// iterations are equal, streams and notes are those of the one of which most is noted. Errors: no requests, too many
// bytes (kOverflow). O(events) and the packing.
absl::StatusOr<ReportModel> MakePicture(const TraceFile& file, const PictureOptions& options);

// The same of a packing instance, about whose blocks nothing more is known.
absl::StatusOr<ReportModel> MakePicture(Instance instance, std::vector<std::string> ids, const PictureOptions& options);

}  // namespace hotpack
