#include "tools/report/write_report.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "packer/cliques.h"
#include "packer/csv.h"
#include "packer/timeline.h"
#include "runtime/persist/plan_file.h"
#include "tools/cli/count_text.h"
#include "tools/cli/file_sink.h"
#include "tools/cli/size_text.h"
#include "tools/formats/any_recording.h"
#include "tools/recording/hot_iteration.h"

namespace hotpack {
namespace {

// A request and policy take some microseconds; offline policies read each pair of overlapping blocks several times. The
// limits keep a page from taking minutes. They count work, not time, so that the same recording gives the same page.
constexpr size_t kOnlineEvents = 4'000'000;
constexpr int64_t kOfflinePairs = 25'000'000;

// Adds the comparison that `hotpack compare` prints.
void AddPeers(const Trace& trace, PageInput* input) {
  if (trace.events.size() > kOnlineEvents) return;
  const bool offline = CountPairs(MakeTimeline(WholeRecording(trace))) <= kOfflinePairs;
  std::vector<std::string> names = PeerNames();
  if (!offline) std::erase_if(names, [](const std::string& name) { return name == "tflite" || name == "xla"; });
  const bool smallest = trace.events.size() <= kSmallestDeviceEvents;
  input->comparison = Compare(trace, names, 0, smallest);
  if (!smallest) input->peers_note = "The smallest devices take long for so many requests: hotpack compare has them. ";
  if (!offline)
    absl::StrAppend(&input->peers_note,
                    "The offline planners of TFLite and XLA take long for so many blocks: hotpack compare has them.");
}

}  // namespace

absl::StatusOr<ReadReportModelResult> ReadReportModel(const std::string& path, const ReportModelOptions& options) {
  absl::StatusOr<std::string> contents = ReadWholeFile(path);
  if (!contents.ok()) return contents.status();
  if (IsPlanFile(reinterpret_cast<const uint8_t*>(contents->data()), contents->size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a plan file has no recording in it; hotpack show prints its figures"));
  }
  ReadReportModelResult result;
  absl::StatusOr<ReportModel> model;
  if (RecogniseFormat(*contents) == FileFormat::kOther && !LooksLikeSnapshot(*contents) &&
      !LooksLikeRmmLog(*contents)) {
    if (const std::string kind = OtherKindOfFile(*contents); !kind.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": is ", kind));
    }
    absl::StatusOr<NamedInstance> named = ParseCsv(*contents, path);
    if (!named.ok()) return named.status();
    model = MakeReportModel(std::move(named->instance), std::move(named->ids), options);
  } else {
    absl::StatusOr<AnyRecording> recording = ParseAnyRecording(*contents, path);
    if (!recording.ok()) return recording.status();
    result.remark = recording->remark;
    result.file = std::move(recording->file);
    model = MakeReportModel(*result.file, options);
  }
  if (!model.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", model.status().message()));
  result.model = *std::move(model);
  return result;
}

absl::Status WriteReport(const ReportOptions& options, std::string* summary) {
  ReportModelOptions picture_options;
  picture_options.time_limit_ns = options.time_limit_ns;
  picture_options.avoid_stream_edges = options.avoid_stream_edges;
  absl::StatusOr<ReadReportModelResult> read = ReadReportModel(options.path, picture_options);
  if (!read.ok()) return read.status();
  PageInput input;
  input.name = std::filesystem::path(options.path).filename().string();
  input.title = options.title;
  input.file = read->file ? &*read->file : nullptr;
  input.model = &read->model;
  input.stats = options.stats;
  input.budget = options.budget;
  input.command = options.command;
  input.block_limit = options.block_limit;
  if (options.peers && input.file != nullptr) AddPeers(input.file->trace, &input);
  const std::string page = Page(input);
  const absl::Status status = WriteFile(options.out, page);
  const ReportModel& model = read->model;
  const auto height = static_cast<uint64_t>(model.packed.placement.height);
  *summary = absl::StrCat(
      model.what, ": ", CountText(model.blocks.size(), "block"), " packed into ", FormatSize(height), ", ",
      absl::StrFormat("%.4f of the lower bound",
                      static_cast<double>(height) / static_cast<double>(std::max<Bytes>(1, model.packed.lower_bound))));
  if (model.blocks.size() > options.block_limit)
    absl::StrAppend(summary, "; ", options.block_limit, " of them are in the page");
  if (!read->remark.empty()) absl::StrAppend(summary, "; ", read->remark);
  return status;
}

}  // namespace hotpack
