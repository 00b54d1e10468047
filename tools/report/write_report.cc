#include "tools/report/write_report.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "packer/csv.h"
#include "tools/file_sink.h"
#include "tools/units.h"

namespace hotpack {
namespace {

// Offline policies compare blocks with each other, the others take some microseconds a request: a page need not wait for
// minutes.
constexpr size_t kOfflineEvents = 60'000, kOnlineEvents = 4'000'000;

std::vector<PeerResult> Peers(const Trace& trace) {
  std::vector<PeerResult> peers;
  for (const std::string& name : PeerNames()) {
    const bool offline = name == "tflite" || name == "xla";
    if (trace.events.size() > (offline ? kOfflineEvents : kOnlineEvents)) continue;
    peers.push_back(SimulatePeer(name, trace));
  }
  return peers;
}

}  // namespace

absl::StatusOr<ReadPictureResult> ReadPicture(const std::string& path, const PictureOptions& options) {
  absl::StatusOr<std::string> contents = ReadWholeFile(path);
  if (!contents.ok()) return contents.status();
  ReadPictureResult result;
  absl::StatusOr<Picture> picture;
  if (RecogniseFormat(*contents) == FileFormat::kOther) {
    absl::StatusOr<NamedInstance> named = ParseCsv(*contents, path);
    if (!named.ok()) return named.status();
    picture = MakePicture(std::move(named->instance), std::move(named->ids), options);
  } else {
    absl::StatusOr<TraceFile> file = ParseTrace(*contents, path);
    if (!file.ok()) return file.status();
    result.file = *std::move(file);
    picture = MakePicture(*result.file, options);
  }
  if (!picture.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", picture.status().message()));
  result.picture = *std::move(picture);
  return result;
}

absl::Status WriteReport(const ReportOptions& options, std::string* summary) {
  PictureOptions picture_options;
  picture_options.time_limit_ns = options.time_limit_ns;
  absl::StatusOr<ReadPictureResult> read = ReadPicture(options.path, picture_options);
  if (!read.ok()) return read.status();
  PageInput input;
  input.name = std::filesystem::path(options.path).filename().string();
  input.title = options.title;
  input.file = read->file ? &*read->file : nullptr;
  input.picture = &read->picture;
  input.stats = options.stats;
  input.command = options.command;
  input.block_limit = options.block_limit;
  if (options.peers && input.file != nullptr) input.peers = Peers(input.file->trace);
  const std::string page = Page(input);
  const absl::Status status = WriteFile(options.out, page);
  const Picture& picture = read->picture;
  const auto height = static_cast<uint64_t>(picture.packed.placement.height);
  *summary = absl::StrCat(picture.what, ": ", picture.blocks.size(), " blocks packed into ", FormatSize(height), ", ",
                          absl::StrFormat("%.4f of the lower bound", static_cast<double>(height) /
                                                                          static_cast<double>(std::max<Bytes>(1, picture.packed.lower_bound))));
  if (picture.blocks.size() > options.block_limit) absl::StrAppend(summary, "; ", options.block_limit, " of them are in the page");
  return status;
}

}  // namespace hotpack
