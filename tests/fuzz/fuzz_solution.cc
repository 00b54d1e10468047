// The readers of solvers' solutions (packer/solution_file.h): an accepted text has a number for each block and gives a
// placement or one line. A rejected text has an error with a place inside the text. The instance and its ids are always
// the same.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "packer/csv.h"
#include "packer/pack.h"
#include "packer/solution_file.h"
#include "packer/validator.h"
#include "tests/fuzz/fuzz.h"

namespace hotpack::fuzz {
namespace {

std::string_view View(absl::string_view text) { return {text.data(), text.size()}; }

const Instance& TheInstance() {
  static const Instance* const instance = new Instance{{{.size = 1536, .residency = {{0, 4}}},
                                                        {.size = 2048, .residency = {{2, 5}}},
                                                        {.size = 512, .residency = {{0, 1}, {4, 5}}}}};
  return *instance;
}

void RequireHeight(const Placement& placement) {
  Bytes height = 0;
  for (size_t i = 0; i < placement.offsets.size(); ++i) {
    height = std::max(height, placement.offsets[i] + TheInstance().blocks[i].size);
  }
  Require(placement.offsets.size() == TheInstance().blocks.size(), "every block has an offset");
  Require(placement.height == height, "the height is that of the offsets");
  Validate(TheInstance(), placement);  // whatever the offsets, it answers
}

void RequireRefused(const absl::Status& status, std::string_view name, std::string_view text) {
  Require(status.code() == absl::StatusCode::kInvalidArgument, "a refusal is InvalidArgument");
  RequireErrorAtColumn(View(status.message()), name, text);
}

void TrySolution(std::string_view text) {
  const size_t blocks = TheInstance().blocks.size();
  const absl::StatusOr<SolverSolution> read = ParseSolverSolution({text.data(), text.size()}, "s.sol", blocks);
  const SolutionFormat format = RecogniseSolution({text.data(), text.size()});
  if (!read.ok()) return RequireRefused(read.status(), "s.sol", text);
  Require(format != SolutionFormat::kPlacementCsv && format != SolutionFormat::kOther, "only solutions are read");
  Require(!read->optimal || read->has_solution || format != SolutionFormat::kCbc, "CBC's optimum is a solution");
  if (!read->has_solution) return;
  Require(read->x.size() == blocks, "every block has a value");
  Require(read->unit >= 1 && read->big >= 0, "unit and W are numbers of bytes");
  Require(std::isfinite(read->height), "the height is a number");
  for (double x : read->x) Require(std::isfinite(x), "offsets are numbers");
  const absl::StatusOr<RoundedSolution> rounded = RoundSolution(*read, TheInstance());
  if (!rounded.ok()) {
    Require(rounded.status().message().find('\n') == absl::string_view::npos, "a refusal is one line");
    return;
  }
  Require(rounded->distance >= 0 && rounded->distance <= 0.5, "rounding moves by half a unit at most");
  for (Offset offset : rounded->placement.offsets) Require(offset % read->unit == 0, "offsets are whole units");
  if (std::all_of(read->x.begin(), read->x.end(), [](double x) { return x >= 0; })) RequireHeight(rounded->placement);
}

void TryPlacement(std::string_view text) {
  const absl::StatusOr<Placement> read =
      ParsePlacementCsv({text.data(), text.size()}, "p.csv", TheInstance(), {"a", "b", "c"});
  // A missing line is reported at the line after the last.
  if (!read.ok()) return RequireRefused(read.status(), "p.csv", std::string(text) + "\n");
  RequireHeight(*read);
  // Written and read again it is the same.
  const std::string written = FormatCsv(TheInstance(), {"a", "b", "c"}, &*read);
  const absl::StatusOr<Placement> again = ParsePlacementCsv(written, "again", TheInstance(), {"a", "b", "c"});
  Require(again.ok(), "what is written is read", again.status().ToString());
  Require(again->offsets == read->offsets, "offsets are read as they were written", written);
}

}  // namespace
}  // namespace hotpack::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  hotpack::fuzz::TrySolution(text);
  hotpack::fuzz::TryPlacement(text);
  return 0;
}
