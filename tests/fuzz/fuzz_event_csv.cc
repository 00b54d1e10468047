// The event CSV reader (profiler/event_csv.h): an accepted text is a valid recording that is the same after writing and
// reading. A rejected text has an error with a place inside the text.
#include <string>
#include <string_view>

#include "profiler/event_csv.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hotpack;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Trace> trace = ParseEventCsv(text, "f.csv");
  if (!trace.ok()) {
    fuzz::RequireErrorAtColumn({trace.status().message().data(), trace.status().message().size()}, "f.csv", text);
    return 0;
  }
  fuzz::RequireValidTrace(*trace);
  uint64_t requests = 0;
  for (const Event& event : trace->events) {
    if (event.kind == EventKind::kAllocate)
      fuzz::Require(event.id == requests++, "ids are ordinals of the allocations");
  }
  const absl::StatusOr<Trace> again = ParseEventCsv(FormatEventCsv(*trace), "again");
  fuzz::Require(again.ok(), "what is written is read", again.status().ToString());
  fuzz::RequireSameTrace(*trace, *again, "events are read as they were written");
  return 0;
}
