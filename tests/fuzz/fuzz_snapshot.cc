// The readers of pickles and of memory snapshots (tools/formats/pickle_reader.h, tools/formats/snapshot_import.h). An
// accepted file is a valid recording, which is the same after export and import. A rejected file has an error of one
// line, a malformed pickle with a byte inside the file. Neither reader exceeds its memory limit by much.
#include <string>
#include <string_view>

#include "tests/fuzz/fuzz.h"
#include "tools/formats/snapshot_export.h"
#include "tools/formats/snapshot_import.h"

namespace hotpack::fuzz {
namespace {

constexpr uint64_t kMemory = uint64_t{1} << 20;

void RequireError(const absl::Status& status, size_t bytes) {
  const std::string_view error(status.message().data(), status.message().size());
  if (error.substr(0, 8) == "f: byte ") return RequireErrorAtByte(error, "f", bytes);
  Require(error.substr(0, 3) == "f: " && error.size() > 3, "an error is NAME: reason", error);
  for (char c : error) Require(c >= ' ' && c <= '~', "an error is one line of printable characters", error);
}

// Through our own writer. Times are whole microseconds since the first event there, streams those of the import: a
// second way changes nothing any more.
void RequireSurvives(const Trace& trace) {
  std::string bytes;
  ExportedSnapshot exported;
  const absl::Status status = WriteSnapshot(
      trace, 1'000'000'000,
      [&](absl::string_view piece) {
        bytes.append(piece.data(), piece.size());
        return absl::OkStatus();
      },
      &exported);
  Require(status.ok(), "what is imported is exported", status.ToString());
  absl::StatusOr<ImportedSnapshot> again = ReadSnapshot(MemorySource(bytes), "again", std::nullopt);
  Require(again.ok(), "what is exported is imported", again.status().ToString());
  RequireSameTrace(trace, again->trace, "events are imported as they were exported");
}

}  // namespace
}  // namespace hotpack::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hotpack;
  const std::string_view contents(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<ImportedSnapshot> imported =
      ReadSnapshot(MemorySource(contents), "f", std::nullopt, fuzz::kMemory);
  if (!imported.ok()) {
    fuzz::RequireError(imported.status(), size);
    return 0;
  }
  fuzz::RequireValidTrace(imported->trace);
  uint64_t next = 0;
  for (const Event& event : imported->trace.events) {
    if (event.kind == EventKind::kAllocate) fuzz::Require(event.id == next++, "ids are ordinals of the allocations");
  }
  fuzz::Require(next == imported->allocations + imported->live_before, "each allocation is counted");
  fuzz::RequireSurvives(imported->trace);
  return 0;
}
