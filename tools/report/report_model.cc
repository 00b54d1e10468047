#include "tools/report/report_model.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "packer/stop.h"
#include "profiler/recorded_streams.h"
#include "tools/cli/count_text.h"
#include "tools/recording/hot_iteration.h"

namespace hotpack {
namespace {

// `streams`: of each block; empty: not known.
absl::Status PackBlocks(const ReportModelOptions& options, const BlockStreams& streams, ReportModel* model) {
  if (model->instance.blocks.empty()) return absl::InvalidArgumentError("no requests to pack");
  WorkClock clock;
  PackOptions pack_options;
  pack_options.clock = &clock;
  pack_options.time_limit_ns = options.time_limit_ns;
  model->packed = Pack(model->instance, pack_options);
  if (model->packed.status == PackStatus::kOk && absl::string_view(model->packed.algorithm) == "stacked" &&
      model->instance.blocks.size() > 1) {
    // Time ran out before the first solver finished, so no two blocks share an offset. That plan is not worth showing.
    // One pass of best-fit takes some microseconds a block.
    pack_options.algorithm = Algorithm::kBestFit;
    pack_options.time_limit_ns = INT64_MAX;
    model->packed = Pack(model->instance, pack_options);
  }
  if (model->packed.status != PackStatus::kOk) {
    return absl::InvalidArgumentError(PackStatusText(model->packed.status));
  }
  if (HasSeveralStreams(streams)) {
    Placement* placement = &model->packed.placement;
    if (options.avoid_stream_edges) {
      model->stream_edges =
          AvoidStreamEdgesInPlace(model->instance, streams, options.time_limit_ns, nullptr, &clock, placement);
    } else {
      const int64_t edges = CountStreamEdges(model->instance, *placement, streams);
      model->stream_edges = {edges, edges};
    }
  }
  model->curves = CurvesOf(model->instance, model->packed.placement);
  model->live_peak = LivePeak(model->curves, model->unplanned);
  return absl::OkStatus();
}

// Returns the number of launches and range edges among the events [begin, end).
uint64_t NotesBetween(const Notes& notes, uint64_t begin, uint64_t end) {
  auto count = [&](const auto& list) {
    auto before = [](const auto& entry, uint64_t position) { return entry.position < position; };
    return static_cast<uint64_t>(std::lower_bound(list.begin(), list.end(), end, before) -
                                 std::lower_bound(list.begin(), list.end(), begin, before));
  };
  return count(notes.launches) + count(notes.ranges);
}

// Returns the occurrence of the iteration whose requests represent its blocks: the one with most notes, of several the
// last. Collectors stop after some iterations.
uint64_t ChooseOccurrence(const TraceFile& file, const std::vector<RunIteration>& iterations, uint64_t otherwise) {
  uint64_t best = otherwise, most = 0;
  for (const RunIteration& iteration : iterations) {
    if (iteration.state != IterationState::kEqual) continue;
    const uint64_t noted = NotesBetween(file.notes, iteration.first_event, iteration.end_event) + 1;
    if (noted < most) continue;
    most = noted;
    best = iteration.first_request;
  }
  return best;
}

// Returns the request of the recording that represents block i of the profile: of the occurrence. If the recording ends
// before it or requests something else there, of an earlier one.
std::optional<uint64_t> RequestOf(const TraceFile& file, const RecordedRequests& requests, const Profile& profile,
                                  uint64_t occurrence, uint32_t i) {
  for (uint64_t ordinal = occurrence + i;; ordinal -= profile.period) {
    if (ordinal < requests.monitored.size()) {
      const RecordedRequest& request = requests.all[requests.monitored[ordinal]];
      if (UnitsOf(file.trace.events[request.event].bytes) == profile.blocks[i].units)
        return requests.monitored[ordinal];
    }
    if (ordinal < profile.period) return std::nullopt;
  }
}

void Describe(const TraceFile& file, const RecordedRequest& request, ReportBlock* block) {
  const Event& event = file.trace.events[request.event];
  block->asked = static_cast<Bytes>(event.bytes);
  block->stream = event.stream;
  block->thread = event.thread;
}

// Adds the notes. events[i] is the allocation that represents blocks[i], kNever if none does.
void AddNotes(const TraceFile& file, const std::vector<uint64_t>& events, ReportModel* model) {
  std::vector<std::pair<uint64_t, size_t>> sorted;
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i] != kNever) sorted.emplace_back(events[i], i);
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<uint64_t> ascending;
  for (const auto& [event, i] : sorted) ascending.push_back(event);
  const std::vector<BlockNotes> notes = NotesOfBlocks(file, ascending, &model->names);
  for (size_t k = 0; k < sorted.size(); ++k) model->blocks[sorted[k].second].notes = notes[k];
}

// Both return the stream of each block.
BlockStreams FillIteration(const TraceFile& file, const HotIteration& hot, ReportModel* model) {
  const Profile& profile = hot.profile;
  const RecordedRequests requests = CollectRequests(file.trace);
  model->period = profile.period;
  model->unroll = profile.unroll;
  model->iterations = CutRun(file.trace, requests, profile);
  std::vector<uint32_t> index;
  model->instance = ToInstance(profile, &index);
  model->unplanned_requests = profile.blocks.size() - index.size();
  const uint64_t occurrence = ChooseOccurrence(file, model->iterations, profile.first_ordinal);
  const uint64_t length = profile.blocks.size();
  model->unplanned = UnplannedLoadOf(file.trace, requests, hot);
  std::vector<uint64_t> events;
  for (uint32_t i : index) {
    ReportBlock block;
    block.request = i;
    block.asked = static_cast<Bytes>(profile.blocks[i].units * kBlockUnit);
    block.kind = i + uint64_t{profile.blocks[i].age} > length ? BlockKind::kCarried : BlockKind::kPacked;
    const std::optional<uint64_t> stands_for = RequestOf(file, requests, profile, occurrence, i);
    if (stands_for) Describe(file, requests.all[*stands_for], &block);
    events.push_back(stands_for ? requests.all[*stands_for].event : kNever);
    model->blocks.push_back(block);
  }
  AddNotes(file, events, model);
  return ToBlockStreams(profile, index);
}

BlockStreams FillWhole(const TraceFile& file, ReportModel* model) {
  model->what = "the whole recording: no iteration repeats";
  model->instance = WholeRecording(file.trace);
  std::vector<uint64_t> events;
  for (const RecordedRequest& request : CollectRequests(file.trace).all) {
    ReportBlock block;
    block.request = events.size();
    block.kind = request.release == kNever ? BlockKind::kKept : BlockKind::kPacked;
    Describe(file, request, &block);
    events.push_back(request.event);
    model->blocks.push_back(block);
  }
  AddNotes(file, events, model);
  return ToBlockStreams(RecordedStreams(file.trace));
}

}  // namespace

absl::StatusOr<ReportModel> MakeReportModel(const TraceFile& file, const ReportModelOptions& options) {
  ReportModel model;
  BlockStreams streams;
  const std::optional<LargestIteration> largest = FindLargestIteration(file.trace);
  if (largest) {
    const HotIteration& hot = largest->hot;
    model.what = absl::StrCat("the ", largest->marked ? "marked " : "", "iteration with the highest live load, ",
                              CountText(hot.profile.period, "request"));
    if (hot.profile.unroll > 1) absl::StrAppend(&model.what, ", unrolled ", hot.profile.unroll, " times");
    streams = FillIteration(file, hot, &model);
  } else {
    streams = FillWhole(file, &model);
  }
  if (absl::Status status = PackBlocks(options, streams, &model); !status.ok()) return status;
  model.sequence = FindSequence(file.trace);
  return model;
}

absl::StatusOr<ReportModel> MakeReportModel(Instance instance, std::vector<std::string> ids,
                                            const ReportModelOptions& options) {
  ReportModel model;
  model.what = "a packing instance";
  model.instance = std::move(instance);
  model.ids = std::move(ids);
  for (size_t i = 0; i < model.instance.blocks.size(); ++i) {
    ReportBlock block;
    block.request = i;
    block.asked = model.instance.blocks[i].size;
    block.kind = model.instance.blocks[i].residency.size() > 1 ? BlockKind::kCarried : BlockKind::kPacked;
    model.blocks.push_back(block);
  }
  if (absl::Status status = PackBlocks(options, {}, &model); !status.ok()) return status;
  return model;
}

}  // namespace hotpack
