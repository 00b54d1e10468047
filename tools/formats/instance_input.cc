#include "tools/formats/instance_input.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "profiler/recorded_streams.h"
#include "profiler/trace_file.h"
#include "tools/cli/count_text.h"
#include "tools/cli/progress.h"
#include "tools/formats/any_recording.h"
#include "tools/recording/hot_iteration.h"

namespace hotpack {
namespace {

BlockStreams OfSeveral(BlockStreams streams) { return HasSeveralStreams(streams) ? streams : BlockStreams(); }

InstanceInput FromRecording(const TraceFile& file) {
  InstanceInput input;
  std::optional<HotIteration> hot = MarkedIteration(file.trace);
  input.what = "the last marked iteration";
  if (!hot) {
    hot = DetectedIteration(file.trace);
    input.what = "the iteration that repeats";
  }
  if (!hot) {
    input.what = "the whole recording: no iteration repeats";
    input.named.instance = WholeRecording(file.trace);
    input.streams = OfSeveral(ToBlockStreams(RecordedStreams(file.trace)));
    return input;
  }
  std::vector<uint32_t> index;
  input.named.instance = ToInstance(hot->profile, &index);
  input.streams = OfSeveral(ToBlockStreams(hot->profile, index));
  for (uint32_t i : index) input.named.ids.push_back(std::to_string(i));
  input.what += ", " + CountText(hot->profile.period, "request");
  if (hot->profile.unroll > 1) input.what += ", unrolled " + std::to_string(hot->profile.unroll) + " times";
  return input;
}

}  // namespace

absl::StatusOr<InstanceInput> ReadInstance(const std::string& path) {
  const Progress progress("reading " + path);
  absl::StatusOr<std::string> contents = ReadWholeFile(path);
  if (!contents.ok()) return contents.status();
  const bool is_log = LooksLikeSnapshot(*contents) || LooksLikeRmmLog(*contents);
  if (RecogniseFormat(*contents) == FileFormat::kOther && !is_log) {
    if (const std::string kind = OtherKindOfFile(*contents); !kind.empty()) {
      return absl::InvalidArgumentError(path + ": is " + kind);
    }
    absl::StatusOr<NamedInstance> named = ParseCsv(*contents, path);
    if (!named.ok()) return named.status();
    return InstanceInput{*std::move(named), "a packing instance", {}};
  }
  absl::StatusOr<AnyRecording> recording = ParseAnyRecording(*contents, path);
  if (!recording.ok()) return recording.status();
  InstanceInput input = FromRecording(recording->file);
  if (!recording->remark.empty()) input.what += " (" + recording->remark + ")";
  if (input.named.instance.blocks.empty()) return absl::InvalidArgumentError(path + ": no requests to pack");
  return input;
}

}  // namespace hotpack
