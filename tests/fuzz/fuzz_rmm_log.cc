// The reader of RMM's logs (tools/formats/rmm_log.h): an accepted log is a valid recording with the allocations that it
// counts. A rejected log has an error with a place inside the text.
#include <string>
#include <string_view>

#include "tests/fuzz/fuzz.h"
#include "tools/formats/rmm_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hotpack;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<ImportedLog> log = ReadRmmLog(MemorySource(text), "f.log");
  if (!log.ok()) {
    fuzz::RequireErrorAtColumn({log.status().message().data(), log.status().message().size()}, "f.log", text);
    return 0;
  }
  fuzz::RequireValidTrace(log->trace);
  uint64_t next = 0;
  for (const Event& event : log->trace.events) {
    if (event.kind == EventKind::kAllocate) fuzz::Require(event.id == next++, "ids are ordinals of the allocations");
  }
  fuzz::Require(next == log->allocations + log->live_before, "each allocation is counted");
  fuzz::Require(!log->trace.events.empty(), "a log that is taken has events");
  fuzz::Require(!log->is_cut || text.back() != '\n', "only a line without an end is cut");
  return 0;
}
