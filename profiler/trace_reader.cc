#include "profiler/trace_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "profiler/trace_format.h"

namespace hotpack {

using namespace trace_format;

namespace {

// Returns the length of the UTF-8 character at the beginning of `text` (Unicode 15, table 3-7); 0 if there is none.
size_t CharacterBytes(std::string_view text) {
  const auto at = [text](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  for (size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong encodings, surrogates, values beyond the last character.
  const bool wrong = (first == 0xE0 && at(1) < 0xA0) || (first == 0xED && at(1) > 0x9F) ||
                     (first == 0xF0 && at(1) < 0x90) || (first == 0xF4 && at(1) > 0x8F);
  return wrong ? 0 : bytes;
}

}  // namespace

RecordReader::Fault RecordReader::Fail(size_t at, std::string reason) {
  fault_at_ = at;
  reason_ = std::move(reason);
  return Fault::kMalformed;
}

RecordReader::Fault RecordReader::Byte(uint8_t* value) {
  if (cursor_ == bytes_.size()) return Short();
  *value = static_cast<uint8_t>(bytes_[cursor_++]);
  return Fault::kNone;
}

RecordReader::Fault RecordReader::Varint(uint64_t limit, const char* what, uint64_t* value) {
  size_t begin = cursor_;
  *value = 0;
  for (int shift = 0;; shift += 7) {
    uint8_t byte;
    if (Fault fault = Byte(&byte); fault != Fault::kNone) return fault;
    if (shift == 63 && byte > 1) return Fail(begin, absl::StrCat(what, " has more than 64 bits"));
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  if (*value > limit) return Fail(begin, absl::StrCat(what, " is ", *value, ", more than ", limit));
  return Fault::kNone;
}

// Reads a zigzag varint.
RecordReader::Fault RecordReader::Difference(const char* what, uint64_t* value) {
  uint64_t code;
  if (Fault fault = Varint(UINT64_MAX, what, &code); fault != Fault::kNone) return fault;
  *value = UnZigZag(code);
  return Fault::kNone;
}

RecordReader::Fault RecordReader::Context(uint8_t tag, Event* event) {
  if (tag & kHasContext) {
    uint64_t thread, stream;
    if (Fault fault = Byte(&event->flags); fault != Fault::kNone) return fault;
    if (Fault fault = Varint(UINT16_MAX, "the thread", &thread); fault != Fault::kNone) return fault;
    if (Fault fault = Varint(UINT32_MAX, "the stream", &stream); fault != Fault::kNone) return fault;
    event->thread = static_cast<uint16_t>(thread);
    event->stream = static_cast<uint32_t>(stream);
  }
  if (tag & kHasTime) {
    uint64_t difference;
    if (Fault fault = Difference("the time", &difference); fault != Fault::kNone) return fault;
    event->time_ns += difference;
  }
  return Fault::kNone;
}

RecordReader::Fault RecordReader::Allocation(uint8_t tag, Event* event) {
  if (tag & kNextId) {
    event->id = last_id_ + 1;
  } else {
    uint64_t difference;
    if (Fault fault = Difference("the id", &difference); fault != Fault::kNone) return fault;
    event->id = last_id_ + difference;
  }
  uint64_t scale = tag & kUnits ? kTraceUnit : 1;
  size_t size_at = cursor_;
  uint64_t size;
  if (Fault fault = Varint(kMaxRecordedBytes / scale, "the size", &size); fault != Fault::kNone) return fault;
  if (size == 0) return Fail(size_at, "an allocation of 0 bytes");
  event->bytes = size * scale;
  if (!blocks_.try_emplace(event->id, event->bytes).second) {
    return Fail(at_, absl::StrCat("block ", event->id, " is allocated a second time"));
  }
  last_id_ = event->id;
  return Fault::kNone;
}

RecordReader::Fault RecordReader::Release(Event* event) {
  uint64_t difference;
  if (Fault fault = Difference("the id", &difference); fault != Fault::kNone) return fault;
  event->id = last_id_ - difference;
  auto block = blocks_.find(event->id);
  if (block == blocks_.end()) {
    return Fail(at_, absl::StrCat("block ", event->id, " is released but was never allocated"));
  }
  if (block->second == 0) return Fail(at_, absl::StrCat("block ", event->id, " is released twice"));
  event->bytes = std::exchange(block->second, 0);
  return Fault::kNone;
}

RecordReader::Fault RecordReader::EventRecord(uint8_t tag, Event* event) {
  event->kind = static_cast<EventKind>(tag & kKindMask);
  event->id = 0;
  event->bytes = 0;
  if (Fault fault = Context(tag, event); fault != Fault::kNone) return fault;
  if (event->kind == EventKind::kAllocate) return Allocation(tag, event);
  if (event->kind == EventKind::kRelease) return Release(event);
  return Fault::kNone;
}

bool RecordReader::Next(TraceFile* file) {
  cursor_ = at_;
  uint8_t tag;
  if (Byte(&tag) != Fault::kNone) return false;
  const uint8_t kind = tag & kKindMask;
  const bool note = kind == kNote && with_notes_;
  if ((kind == 0 || kind == kNote || (kind != 1 && (tag & (kNextId | kUnits)) != 0) || (tag & kReserved) != 0) &&
      (!note || (tag & ~(kKindMask | kHasContext | kHasTime)) != 0)) {
    return Fail(at_, absl::StrCat("no record begins with ", tag)) == Fault::kNone;
  }
  Event event = last_;
  if ((note ? NoteRecord(tag, &event, file) : EventRecord(tag, &event)) != Fault::kNone) return false;
  if (!note) file->trace.events.push_back(event);
  last_ = event;
  at_ = cursor_;
  return true;
}

// Reads a note. Its context and time go to *context, like those of an event.
RecordReader::Fault RecordReader::NoteRecord(uint8_t tag, Event* context, TraceFile* file) {
  const size_t kind_at = cursor_;
  uint8_t kind;
  if (Fault fault = Byte(&kind); fault != Fault::kNone) return fault;
  if (Fault fault = Context(tag, context); fault != Fault::kNone) return fault;
  const uint64_t position = file->trace.events.size();
  switch (kind) {
    case kNoteName:
      return Name(&file->notes);
    case kNoteLaunch:
      return LaunchNote(*context, position, &file->notes);
    case kNoteWork:
      return Work(&file->notes);
    case kNoteRange:
      return Range(*context, position, &file->notes);
    case kNoteStack:
      return Stack(&file->notes);
    case kNoteMemory:
      return Memory(*context, position, &file->notes);
    default:
      return Fail(kind_at, absl::StrCat("no note is of kind ", kind));
  }
}

// Reads a name: an ordinal + 1, or 0 for none.
RecordReader::Fault RecordReader::NameOf(const Notes& notes, NameOrdinal* name) {
  uint64_t code;
  if (Fault fault = Varint(notes.names.size(), "the name", &code); fault != Fault::kNone) return fault;
  *name = code == 0 ? kNoName : static_cast<NameOrdinal>(code - 1);
  return Fault::kNone;
}

RecordReader::Fault RecordReader::LiveBlock(uint64_t* id) {
  const size_t id_at = cursor_;
  uint64_t difference;
  if (Fault fault = Difference("the id", &difference); fault != Fault::kNone) return fault;
  *id = last_id_ - difference;
  auto block = blocks_.find(*id);
  if (block == blocks_.end() || block->second == 0) {
    return Fail(id_at, absl::StrCat("block ", *id, " is named but is not live"));
  }
  return Fault::kNone;
}

// Invalid UTF-8 (a program may choose any range names) must not reach JSON, and control characters must not reach a
// line or terminal: each such byte becomes '?'. Line ends stay, because they separate the frames of a stack.
RecordReader::Fault RecordReader::Name(Notes* notes) {
  uint64_t length;
  if (Fault fault = Varint(kMaxNameBytes, "the name's length", &length); fault != Fault::kNone) return fault;
  if (length > bytes_.size() - cursor_) return Short();
  if (notes->names.size() >= kNoName) return Fail(at_, "too many names");
  std::string name(bytes_.substr(cursor_, length));
  for (size_t i = 0; i < name.size();) {
    const size_t bytes = CharacterBytes(std::string_view(name).substr(i));
    char& c = name[i];
    if (bytes == 0 || (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f) c = '?';
    i += bytes == 0 ? 1 : bytes;
  }
  notes->names.push_back(std::move(name));
  cursor_ += length;
  return Fault::kNone;
}

RecordReader::Fault RecordReader::LaunchNote(const Event& context, uint64_t position, Notes* notes) {
  Launch launch;
  launch.position = position;
  launch.time_ns = context.time_ns;
  launch.first_block = notes->launch_blocks.size();
  launch.stream = context.stream;
  launch.thread = context.thread;
  if (Fault fault = NameOf(*notes, &launch.name); fault != Fault::kNone) return fault;
  uint64_t count;
  if (Fault fault = Varint(kMaxLaunchBlocks, "the number of blocks", &count); fault != Fault::kNone) return fault;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t id;
    if (Fault fault = LiveBlock(&id); fault != Fault::kNone) return fault;
    notes->launch_blocks.push_back(id);
  }
  launch.blocks = static_cast<uint32_t>(count);
  notes->launches.push_back(launch);
  return Fault::kNone;
}

RecordReader::Fault RecordReader::Work(Notes* notes) {
  const size_t distance_at = cursor_;
  uint64_t distance, start, length;
  NameOrdinal name;
  if (Fault fault = Varint(UINT64_MAX, "the launch", &distance); fault != Fault::kNone) return fault;
  if (distance == 0 || distance > notes->launches.size()) {
    return Fail(distance_at, absl::StrCat("there is no launch ", distance, " before it"));
  }
  if (Fault fault = Difference("the time", &start); fault != Fault::kNone) return fault;
  start += last_end_;
  const size_t length_at = cursor_;
  if (Fault fault = Varint(UINT64_MAX, "the length of the work", &length); fault != Fault::kNone) return fault;
  if (length > UINT64_MAX - start) return Fail(length_at, "the work ends before it starts");
  if (Fault fault = NameOf(*notes, &name); fault != Fault::kNone) return fault;
  Launch& launch = notes->launches[notes->launches.size() - distance];
  launch.start_ns = start;
  launch.end_ns = last_end_ = start + length;
  if (name != kNoName) launch.name = name;
  return Fault::kNone;
}

RecordReader::Fault RecordReader::Range(const Event& context, uint64_t position, Notes* notes) {
  RangeEdge edge;
  edge.position = position;
  edge.time_ns = context.time_ns;
  edge.thread = context.thread;
  const size_t kind_at = cursor_;
  uint8_t kind;
  if (Fault fault = Byte(&kind); fault != Fault::kNone) return fault;
  edge.kind = static_cast<RangeKind>(kind);
  switch (edge.kind) {
    case RangeKind::kPush:
    case RangeKind::kPop:
    case RangeKind::kStart:
    case RangeKind::kEnd:
    case RangeKind::kMark:
      break;
    default:
      return Fail(kind_at, absl::StrCat("no edge of a range is of kind ", kind));
  }
  if (edge.kind == RangeKind::kStart || edge.kind == RangeKind::kEnd) {
    if (Fault fault = Varint(UINT64_MAX, "the range", &edge.id); fault != Fault::kNone) return fault;
  }
  if (edge.kind != RangeKind::kPop && edge.kind != RangeKind::kEnd) {
    if (Fault fault = NameOf(*notes, &edge.name); fault != Fault::kNone) return fault;
  }
  notes->ranges.push_back(edge);
  return Fault::kNone;
}

RecordReader::Fault RecordReader::Stack(Notes* notes) {
  BlockStack stack;
  if (Fault fault = LiveBlock(&stack.id); fault != Fault::kNone) return fault;
  if (Fault fault = NameOf(*notes, &stack.stack); fault != Fault::kNone) return fault;
  if (!with_stack_.insert(stack.id).second) return Fail(at_, absl::StrCat("block ", stack.id, " has a second stack"));
  notes->stacks.push_back(stack);
  return Fault::kNone;
}

RecordReader::Fault RecordReader::Memory(const Event& context, uint64_t position, Notes* notes) {
  DriverMemory memory;
  memory.position = position;
  memory.time_ns = context.time_ns;
  memory.thread = context.thread;
  const size_t released_at = cursor_;
  uint8_t released;
  uint64_t kind;
  if (Fault fault = Byte(&released); fault != Fault::kNone) return fault;
  if (released > 1) return Fail(released_at, absl::StrCat("memory is given (0) or taken back (1), not ", released));
  memory.released = released == 1;
  if (Fault fault = Varint(UINT32_MAX, "the kind of memory", &kind); fault != Fault::kNone) return fault;
  memory.kind = static_cast<uint32_t>(kind);
  if (Fault fault = Varint(UINT64_MAX, "the address", &memory.address); fault != Fault::kNone) return fault;
  if (Fault fault = Varint(UINT64_MAX, "the size", &memory.bytes); fault != Fault::kNone) return fault;
  if (Fault fault = NameOf(*notes, &memory.name); fault != Fault::kNone) return fault;
  notes->memory.push_back(memory);
  return Fault::kNone;
}

}  // namespace hotpack
