// A recording in either format through all of `hotpack show` and `hotpack pack`: the format is detected, the recording
// is read, its iteration is found, converted to an instance, and packed. The instance must be valid for any recording.
#include <string>
#include <string_view>
#include <vector>

#include "packer/pack.h"
#include "packer/validator.h"
#include "profiler/trace_file.h"
#include "tests/fuzz/fuzz.h"
#include "tools/recording/hot_iteration.h"
#include "tools/recording/trace_facts.h"

namespace hotpack::fuzz {
namespace {

void RequirePackable(const Instance& instance) {
  const PackStatus status = CheckInstance(instance);
  Require(status == PackStatus::kOk || status == PackStatus::kOverflow, "a recording makes an instance",
          PackStatusText(status));
  if (status != PackStatus::kOk) return;
  const PackResult result = Pack(instance, {.algorithm = Algorithm::kBestFit});
  Require(result.status == PackStatus::kOk, "what passes the check is packed", PackStatusText(result.status));
  const std::string fault = Validate(instance, result.placement);
  Require(fault.empty(), "the placement is valid", fault);
}

void RequireSound(const HotIteration& hot, uint64_t requests) {
  const Profile& profile = hot.profile;
  Require(profile.blocks.size() == uint64_t{profile.period} * profile.unroll,
          "a profile has period times unroll blocks");
  Require(profile.unroll >= 1, "a script is unrolled once or more");
  Require(profile.blocks.size() <= std::max<uint64_t>(kMaxUnroll * uint64_t{profile.period}, kMinCycle),
          "... at most 8 times, or to kMinCycle requests");
  Require(profile.period <= requests, "an iteration is no longer than the recording");
  std::vector<uint32_t> index;
  const Instance instance = ToInstance(profile, &index);
  Require(index.size() == instance.blocks.size(), "each block of the instance is one of the profile's");
  for (uint32_t i : index) Require(i < profile.blocks.size(), "each block of the instance is one of the profile's");
  RequirePackable(instance);
}

}  // namespace
}  // namespace hotpack::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hotpack;
  const std::string_view contents(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<TraceFile> file = ParseTrace(contents, "f");
  if (!file.ok()) return 0;
  constexpr size_t kMaxEvents = 4096;  // detection is linear, but thousands of inputs are to be tried
  if (file->trace.events.size() > kMaxEvents) return 0;
  const TraceFacts facts = CountFacts(file->trace);
  fuzz::Require(facts.events == file->trace.events.size(), "every event is counted");
  fuzz::Require(facts.live_end <= facts.live_peak, "the peak is the largest");
  if (const auto hot = MarkedIteration(file->trace)) fuzz::RequireSound(*hot, facts.requests);
  if (const auto hot = DetectedIteration(file->trace)) fuzz::RequireSound(*hot, facts.requests);
  const Instance whole = WholeRecording(file->trace);
  fuzz::Require(whole.blocks.size() == facts.requests, "every request is a block of the whole recording");
  fuzz::RequirePackable(whole);
  return 0;
}
