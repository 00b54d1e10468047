// The minimalloc CSV reader (packer/csv.h): an accepted text can be packed, and is the same after writing and reading.
// A rejected text has an error with a place inside the text.
#include <string>
#include <string_view>
#include <tuple>

#include "packer/csv.h"
#include "packer/pack.h"
#include "packer/validator.h"
#include "tests/fuzz/fuzz.h"

namespace hotpack::fuzz {
namespace {

bool SameBlock(const Block& a, const Block& b) {
  const auto same_residency = [](const Residency& x, const Residency& y) {
    return std::tie(x.begin, x.end) == std::tie(y.begin, y.end);
  };
  return a.size == b.size && a.alignment == b.alignment && a.pinned == b.pinned &&
         std::equal(a.residency.begin(), a.residency.end(), b.residency.begin(), b.residency.end(), same_residency);
}

void RequireRoundTrip(const NamedInstance& read) {
  Placement placement{read.offsets, 0};
  const std::string text = FormatCsv(read.instance, read.ids, read.offsets.empty() ? nullptr : &placement);
  const absl::StatusOr<NamedInstance> again = ParseCsv(text, "again");
  Require(again.ok(), "what is written is read", again.status().ToString());
  Require(again->ids == read.ids, "ids are read as they were written", text);
  Require(again->offsets == read.offsets, "offsets are read as they were written", text);
  Require(again->instance.blocks.size() == read.instance.blocks.size(), "no block is lost", text);
  for (size_t i = 0; i < read.instance.blocks.size(); ++i) {
    Require(SameBlock(read.instance.blocks[i], again->instance.blocks[i]), "blocks are read as they were written",
            text);
  }
}

// Of the numbers a file may hold only their sum with the alignments can be too much for the packer.
void RequirePackable(const Instance& instance) {
  const PackStatus status = CheckInstance(instance);
  Require(status == PackStatus::kOk || status == PackStatus::kOverflow, "what is read is an instance",
          PackStatusText(status));
  constexpr size_t kMaxBlocks = 200;  // because the reader is tested here
  if (status != PackStatus::kOk || instance.blocks.size() > kMaxBlocks) return;
  const PackResult result = Pack(instance, {.algorithm = Algorithm::kBestFit});
  Require(result.status == PackStatus::kOk, "what passes the check is packed", PackStatusText(result.status));
  const std::string fault = Validate(instance, result.placement);
  Require(fault.empty(), "the placement is valid", fault);
  Require(result.placement.height >= result.lower_bound, "no placement is below the lower bound");
}

}  // namespace
}  // namespace hotpack::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hotpack;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<NamedInstance> read = ParseCsv({text.data(), text.size()}, "f.csv");
  if (!read.ok()) {
    fuzz::Require(read.status().code() == absl::StatusCode::kInvalidArgument, "a refusal is InvalidArgument");
    fuzz::RequireErrorAtColumn({read.status().message().data(), read.status().message().size()}, "f.csv", text);
    return 0;
  }
  fuzz::Require(read->ids.size() == read->instance.blocks.size(), "every block has an id");
  fuzz::Require(read->offsets.empty() || read->offsets.size() == read->ids.size(),
                "every block has an offset, or none");
  fuzz::RequireRoundTrip(*read);
  fuzz::RequirePackable(read->instance);
  return 0;
}
