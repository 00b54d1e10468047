// The reader of plan files (runtime/persist/plan_file.h, docs/plan_format.md) accepts or rejects any bytes. An accepted
// file has scripts with valid placements, and an opening that names their entries. It is the same after writing and
// reading. Each input is tried with its own checksum and with the right one, because the checksum would reject all but
// the seeds.
#include <cstring>
#include <string>
#include <vector>

#include "packer/validator.h"
#include "runtime/persist/plan_file.h"
#include "tests/fuzz/fuzz.h"

namespace hotpack::fuzz {
namespace {

constexpr size_t kFileBytesAt = 16, kChecksumAt = 24, kChecksumEnd = 28;

// The file's length and CRC-32C, put right. Bit by bit: not the reader's own.
void Seal(std::vector<uint8_t>* file) {
  for (size_t i = 0; i < 8; ++i) (*file)[kFileBytesAt + i] = static_cast<uint8_t>(uint64_t{file->size()} >> (8 * i));
  memset(file->data() + kChecksumAt, 0, kChecksumEnd - kChecksumAt);
  uint32_t crc = ~0u;
  for (uint8_t byte : *file) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0x82F63B78u & (0u - (crc & 1)));
  }
  for (size_t i = 0; i < 4; ++i) (*file)[kChecksumAt + i] = static_cast<uint8_t>(~crc >> (8 * i));
}

void RequireSound(const Script& script) {
  std::vector<uint32_t> index;
  const Instance instance = ToInstance(script.profile, &index);
  Require(!index.empty(), "something is planned");
  Placement placement;
  placement.height = static_cast<Bytes>(script.height_bytes);
  for (uint32_t i : index) placement.offsets.push_back(static_cast<Offset>(script.entries[i].offset * kBlockUnit));
  const std::string fault = Validate(instance, placement);
  Require(fault.empty(), "a script is a valid placement", fault);
  Require(script.fragments.empty() && script.zone_offset == 0, "a script has no holes");
  Require(script.entries.size() == script.size() + size_t{1}, "there is an entry for each request");
  Require(script.entries.back().first_successor == script.successors.size(), "successors are connected");
  for (uint32_t successor : script.successors) Require(successor < script.size(), "a successor is an entry");
}

void RequireSound(const SavedPlan& plan) {
  for (const auto& script : plan.scripts) RequireSound(*script);
  const Opening& opening = plan.opening;
  Require(opening.script < plan.scripts.size(), "an opening is of one of the scripts");
  Require(opening.units.size() == opening.entries.size(), "each request of the opening is an entry or none");
  const Script& script = *plan.scripts[opening.script];
  for (uint32_t entry : opening.entries) {
    Require(entry == kNone || (entry < script.size() && script.entries[entry].offset != kNone),
            "an entry of an opening is planned");
  }
}

void Try(const std::vector<uint8_t>& file) {
  SavedPlan plan;
  if (DecodePlan(file.data(), file.size(), &plan) != PlanFileStatus::kOk) {
    Require(plan.scripts.empty(), "what is refused leaves nothing");
    return;
  }
  RequireSound(plan);
  const std::vector<uint8_t> again = EncodePlan(plan);
  SavedPlan reread;
  Require(DecodePlan(again.data(), again.size(), &reread) == PlanFileStatus::kOk, "what is written is read");
  Require(EncodePlan(reread) == again, "what is read again is the same");
}

}  // namespace
}  // namespace hotpack::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hotpack::fuzz;
  std::vector<uint8_t> file(data, data + size);
  Try(file);
  if (size < kChecksumEnd) return 0;
  Seal(&file);
  Try(file);
  return 0;
}
