// The trace file reader (profiler/trace_file.h, docs/trace_format.md): what it takes is a valid recording, which an encoder
// of this file's own writes without any abbreviation and the reader then reads as the same; a file whose committed length
// ends earlier gives the beginning of the recording or nothing; what it refuses it refuses with a byte inside the file.
#include <cstring>
#include <string>
#include <string_view>

#include "profiler/trace_file.h"
#include "profiler/trace_format.h"
#include "tests/fuzz/fuzz.h"

namespace hotpack::fuzz {
namespace {

using namespace trace_format;

void PutVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// Every field written out: no id, size, context or time is left to be inferred.
std::string Encode(const Trace& trace) {
  std::string out;
  uint64_t last_id = UINT64_MAX, last_time = 0;
  for (const Event& event : trace.events) {
    out.push_back(static_cast<char>(static_cast<uint8_t>(event.kind) | kHasContext | kHasTime));
    out.push_back(static_cast<char>(event.flags));
    PutVarint(event.thread, &out);
    PutVarint(event.stream, &out);
    PutVarint(ZigZag(event.time_ns - last_time), &out);
    last_time = event.time_ns;
    if (event.kind == EventKind::kRelease) PutVarint(ZigZag(last_id - event.id), &out);
    if (event.kind != EventKind::kAllocate) continue;
    PutVarint(ZigZag(event.id - last_id), &out);
    PutVarint(event.bytes, &out);
    last_id = event.id;
  }
  return out;
}

void SetCommitted(uint64_t bytes, std::string* file) { memcpy(file->data() + kCommittedAt, &bytes, sizeof(bytes)); }

absl::StatusOr<TraceFile> Parsed(std::string_view contents) {
  absl::StatusOr<TraceFile> file = ParseTraceFile(contents, "f");
  if (!file.ok()) {
    RequireErrorAtByte({file.status().message().data(), file.status().message().size()}, "f", contents.size());
  }
  return file;
}

// The recording as it was when its committed length was `bytes`.
void RequirePrefix(const Trace& whole, std::string contents, uint64_t bytes) {
  SetCommitted(bytes, &contents);
  const absl::StatusOr<TraceFile> cut = Parsed(contents);
  if (!cut.ok()) return;
  const Trace& part = cut->trace;
  Require(part.events.size() <= whole.events.size(), "a shorter file has no more events");
  Trace same{{whole.events.begin(), whole.events.begin() + static_cast<std::ptrdiff_t>(part.events.size())}};
  RequireSameTrace(same, part, "a shorter file has the same first events");
}

}  // namespace
}  // namespace hotpack::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hotpack;
  using namespace hotpack::fuzz;
  const std::string contents(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<TraceFile> file = Parsed(contents);
  if (!file.ok()) return 0;
  RequireValidTrace(file->trace);
  for (char c : file->origin.program) Require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "a name fits on a line");

  std::string again = contents.substr(0, kHeaderBytes) + Encode(file->trace);
  SetCommitted(again.size(), &again);
  const absl::StatusOr<TraceFile> reread = Parsed(again);
  Require(reread.ok(), "what is encoded is read", reread.status().ToString());
  RequireSameTrace(file->trace, reread->trace, "events are read as they were encoded");

  uint64_t committed = 0;
  memcpy(&committed, data + kCommittedAt, sizeof(committed));
  const uint64_t records = committed - kHeaderBytes;
  if (records > 0) RequirePrefix(file->trace, contents, kHeaderBytes + (records * 7 / 11 + data[size - 1]) % records);
  return 0;
}
