#include "bench/iteration.h"

#include <vector>

#include "packer/pack.h"

namespace hotpack::bench {
Profile ProfileOf(const Sequence& sequence) {
  Profile profile;
  profile.period = sequence.slots;
  profile.blocks.resize(sequence.slots);
  uint32_t requests = 0;
  for (const Call& call : sequence.calls) {
    ProfileBlock& block = profile.blocks[call.slot];
    if (call.bytes != 0) {
      block = {.units = UnitsOf(call.bytes), .planned = true};
      ++requests;
    } else {
      block.age = block.min_age = requests - call.slot;  // slots are numbered by request
    }
  }
  return profile;
}

std::shared_ptr<const Script> ScriptOf(const Profile& profile) {
  std::vector<uint32_t> index;
  const Instance instance = ToInstance(profile, &index);
  const PackResult packed = Pack(instance, {.algorithm = Algorithm::kBestFit, .time_limit_ns = INT64_MAX / 2});
  if (packed.status != PackStatus::kOk) return nullptr;
  return std::make_shared<const Script>(
      CompileScript(profile, index, packed.placement.offsets, {}, 0, packed.lower_bound));
}

}  // namespace hotpack::bench
