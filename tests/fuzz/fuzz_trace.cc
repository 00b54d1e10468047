// The trace file reader (profiler/trace_file.h, docs/trace_format.md):
//  1. An accepted file is a valid recording. This file's own encoder writes it without abbreviations, and the reader
//     reads that as the same.
//  2. A file whose committed length ends earlier gives the beginning of the recording or nothing.
//  3. A rejected file has an error with a byte inside the file.
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/trace_file.h"
#include "profiler/trace_format.h"
#include "tests/fuzz/fuzz.h"
#include "tests/profiler/trace_samples.h"

namespace hotpack::fuzz {
namespace {

using namespace trace_format;

void PutVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

uint64_t CodeOf(NameOrdinal name) { return name == kNoName ? 0 : uint64_t{name} + 1; }

// The part that is the same in every record: context and time, written out.
void PutContext(uint8_t flags, uint16_t thread, uint32_t stream, uint64_t time, uint64_t* last_time, std::string* out) {
  out->push_back(static_cast<char>(flags));
  PutVarint(thread, out);
  PutVarint(stream, out);
  PutVarint(ZigZag(time - *last_time), out);
  *last_time = time;
}

void BeginNote(NoteKind kind, std::string* out) {
  out->push_back(static_cast<char>(kNote | kHasContext | kHasTime));
  out->push_back(static_cast<char>(kind));
}

// The notes of one kind from `next` on that lie before event `position`, by encode(note).
template <typename Note, typename EncodeOne>
void PutAt(const std::vector<Note>& notes, uint64_t position, size_t* next, EncodeOne encode) {
  for (; *next < notes.size() && notes[*next].position == position; ++*next) encode(notes[*next]);
}

// Every field written out: no id, size, context or time is left to be inferred. Names first, work and stacks last.
class Encoder {
 public:
  Encoder(const Trace& trace, const Notes& notes) : trace_(trace), notes_(notes) {}
  std::string Encode();

 private:
  void PutNotes(uint64_t position);
  void PutEvent(const Event& event);

  const Trace& trace_;
  const Notes& notes_;
  std::string out_;
  uint64_t last_id_ = UINT64_MAX, last_time_ = 0;
  uint64_t last_end_ = 0;
  size_t launch_ = 0, range_ = 0, memory_ = 0;
};

void Encoder::PutNotes(uint64_t position) {
  PutAt(notes_.launches, position, &launch_, [this](const Launch& launch) {
    BeginNote(kNoteLaunch, &out_);
    PutContext(0, launch.thread, launch.stream, launch.time_ns, &last_time_, &out_);
    PutVarint(CodeOf(launch.name), &out_);
    PutVarint(launch.blocks, &out_);
    for (uint64_t i = 0; i < launch.blocks; ++i)
      PutVarint(ZigZag(last_id_ - notes_.launch_blocks[launch.first_block + i]), &out_);
    out_.push_back(static_cast<char>(kNote));
    out_.push_back(static_cast<char>(kNoteWork));
    PutVarint(1, &out_);
    PutVarint(ZigZag(launch.start_ns - last_end_), &out_);
    PutVarint(launch.end_ns - launch.start_ns, &out_);
    last_end_ = launch.end_ns;
    PutVarint(0, &out_);
  });
  PutAt(notes_.ranges, position, &range_, [this](const RangeEdge& edge) {
    BeginNote(kNoteRange, &out_);
    PutContext(0, edge.thread, 0, edge.time_ns, &last_time_, &out_);
    out_.push_back(static_cast<char>(edge.kind));
    const bool has_id = edge.kind == RangeKind::kStart || edge.kind == RangeKind::kEnd;
    if (has_id) PutVarint(edge.id, &out_);
    if (edge.kind != RangeKind::kPop && edge.kind != RangeKind::kEnd) PutVarint(CodeOf(edge.name), &out_);
  });
  PutAt(notes_.memory, position, &memory_, [this](const DriverMemory& memory) {
    BeginNote(kNoteMemory, &out_);
    PutContext(0, memory.thread, 0, memory.time_ns, &last_time_, &out_);
    out_.push_back(memory.released ? 1 : 0);
    PutVarint(memory.kind, &out_);
    PutVarint(memory.address, &out_);
    PutVarint(memory.bytes, &out_);
    PutVarint(CodeOf(memory.name), &out_);
  });
}

void Encoder::PutEvent(const Event& event) {
  out_.push_back(static_cast<char>(static_cast<uint8_t>(event.kind) | kHasContext | kHasTime));
  PutContext(event.flags, event.thread, event.stream, event.time_ns, &last_time_, &out_);
  if (event.kind == EventKind::kRelease) PutVarint(ZigZag(last_id_ - event.id), &out_);
  if (event.kind != EventKind::kAllocate) return;
  PutVarint(ZigZag(event.id - last_id_), &out_);
  PutVarint(event.bytes, &out_);
  last_id_ = event.id;
  const auto stack = std::lower_bound(notes_.stacks.begin(), notes_.stacks.end(), event.id,
                                      [](const BlockStack& each, uint64_t id) { return each.id < id; });
  if (stack == notes_.stacks.end() || stack->id != event.id) return;
  out_.push_back(static_cast<char>(kNote));
  out_.push_back(static_cast<char>(kNoteStack));
  PutVarint(0, &out_);
  PutVarint(CodeOf(stack->stack), &out_);
}

std::string Encoder::Encode() {
  for (const std::string& name : notes_.names) {
    out_.push_back(static_cast<char>(kNote));
    out_.push_back(static_cast<char>(kNoteName));
    PutVarint(name.size(), &out_);
    out_ += name;
  }
  for (size_t i = 0; i < trace_.events.size(); ++i) {
    PutNotes(i);
    PutEvent(trace_.events[i]);
  }
  PutNotes(trace_.events.size());
  return out_;
}

void SetCommitted(uint64_t bytes, std::string* file) { memcpy(file->data() + kCommittedAt, &bytes, sizeof(bytes)); }

absl::StatusOr<TraceFile> Parsed(std::string_view contents) {
  absl::StatusOr<TraceFile> file = ParseTraceFile(contents, "f");
  if (!file.ok()) {
    RequireErrorAtByte({file.status().message().data(), file.status().message().size()}, "f", contents.size());
  }
  return file;
}

void RequireValidNotes(const TraceFile& file) {
  const Notes& notes = file.notes;
  uint64_t position = 0;
  const auto at = [&](uint64_t next, NameOrdinal name) {
    Require(next <= file.trace.events.size(), "a note lies in the recording");
    Require(next >= position, "positions never fall");
    Require(name == kNoName || name < notes.names.size(), "a name is there");
    position = next;
  };
  for (const Launch& launch : notes.launches) {
    at(launch.position, launch.name);
    Require(launch.first_block + launch.blocks <= notes.launch_blocks.size(), "a launch's blocks are there");
    Require(launch.start_ns <= launch.end_ns, "work ends after it starts");
  }
  position = 0;
  for (const RangeEdge& edge : notes.ranges) at(edge.position, edge.name);
  position = 0;
  for (const DriverMemory& memory : notes.memory) at(memory.position, memory.name);
  for (size_t i = 1; i < notes.stacks.size(); ++i)
    Require(notes.stacks[i - 1].id < notes.stacks[i].id, "stacks are by id");
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
  for (char c : file->origin.program)
    Require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "a name fits on a line");

  RequireValidNotes(*file);
  std::string again = contents.substr(0, kHeaderBytes) + Encoder(file->trace, file->notes).Encode();
  SetCommitted(again.size(), &again);
  const absl::StatusOr<TraceFile> reread = Parsed(again);
  Require(reread.ok(), "what is encoded is read", reread.status().ToString());
  RequireSameTrace(file->trace, reread->trace, "events are read as they were encoded");
  const std::string differ = testing::NotesDiffer(file->notes, reread->notes);
  Require(differ.empty(), "notes are read as they were encoded", differ);

  uint64_t committed = 0;
  memcpy(&committed, data + kCommittedAt, sizeof(committed));
  const uint64_t records = committed - kHeaderBytes;
  if (records > 0) RequirePrefix(file->trace, contents, kHeaderBytes + (records * 7 / 11 + data[size - 1]) % records);
  return 0;
}
