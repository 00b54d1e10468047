#include "tools/recording/trace_output.h"

#include <cstring>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "profiler/event_csv.h"
#include "profiler/trace_record.h"
#include "tools/cli/file_sink.h"

namespace hotpack {
namespace {

using namespace trace_format;

constexpr size_t kPieceBytes = size_t{1} << 16;

template <typename T>
void Put(std::string* out, size_t at, T value) {
  std::memcpy(out->data() + at, &value, sizeof(value));
}

// Calls record(bytes, length) -> bool for every record of a recording, in order, until one returns false. Names come
// first, stacks after their blocks' allocations, a launch's work after the launch.
template <typename Record>
class RecordLister {
 public:
  RecordLister(const Trace& trace, const Notes& notes, Record record)
      : trace_(trace), notes_(notes), record_(record), bytes_(kMaxNoteBytes) {
    for (const BlockStack& stack : notes.stacks) stacks_.emplace(stack.id, stack);
  }

  void List() {
    for (const std::string& name : notes_.names) Hand(encoder_.EncodeName(CutName(name), bytes_.data()));
    for (size_t i = 0; i < trace_.events.size() && going_on_; ++i) {
      AddNotesAt(i);
      const Event& event = trace_.events[i];
      Add(event);
      if (event.kind != EventKind::kAllocate) continue;
      if (const auto stack = stacks_.find(event.id); stack != stacks_.end()) Add(stack->second);
    }
    AddNotesAt(trace_.events.size());
  }

 private:
  void Hand(size_t length) {
    if (going_on_) going_on_ = record_(bytes_.data(), length);
  }
  template <typename Item>
  void Add(const Item& item) {
    Hand(encoder_.Encode(item, bytes_.data()));
    encoder_.Accept(item);
  }
  void AddLaunch(const Launch& launch) {
    Hand(encoder_.Encode(launch, notes_.launch_blocks.data() + launch.first_block, bytes_.data()));
    encoder_.Accept(launch);
    if (launch.end_ns != 0) Add(LaunchWork{next_launch_, launch.start_ns, launch.end_ns, kNoName});
    ++next_launch_;
  }
  void AddNotesAt(uint64_t position) {
    for (; next_range_ < notes_.ranges.size() && notes_.ranges[next_range_].position <= position; ++next_range_) {
      Add(notes_.ranges[next_range_]);
    }
    for (; next_memory_ < notes_.memory.size() && notes_.memory[next_memory_].position <= position; ++next_memory_) {
      Add(notes_.memory[next_memory_]);
    }
    while (next_launch_ < notes_.launches.size() && notes_.launches[next_launch_].position <= position) {
      AddLaunch(notes_.launches[next_launch_]);
    }
  }

  const Trace& trace_;
  const Notes& notes_;
  Record record_;
  TraceRecordEncoder encoder_;
  std::vector<unsigned char> bytes_;
  absl::flat_hash_map<uint64_t, BlockStack> stacks_;
  size_t next_range_ = 0, next_memory_ = 0;
  uint64_t next_launch_ = 0;
  bool going_on_ = true;
};

bool HasNotes(const Notes& notes) { return !notes.empty() || !notes.names.empty(); }

// Returns the total length of the records. The header, which precedes them, contains it.
uint64_t RecordBytes(const Trace& trace, const Notes& notes) {
  uint64_t bytes = 0;
  RecordLister lister(trace, notes, [&bytes](const unsigned char*, size_t length) {
    bytes += length;
    return true;
  });
  lister.List();
  return bytes;
}

std::string Header(uint64_t record_bytes, uint64_t began_ns, bool notes) {
  std::string header(kHeaderBytes, '\0');
  std::memcpy(header.data(), kMagic, sizeof(kMagic));
  Put(&header, kVersionAt, notes ? kVersionWithNotes : kVersion);
  Put(&header, kHeaderBytesAt, static_cast<uint16_t>(kHeaderBytes));
  Put(&header, kStateAt, static_cast<uint32_t>(kClosed));
  Put(&header, kCommittedAt, uint64_t{kHeaderBytes} + record_bytes);
  Put(&header, kCreatedAt, began_ns);
  return header;
}

// Writes the collected bytes.
absl::Status Flush(std::string* piece, FileSink* file) {
  absl::Status status = file->Append(*piece);
  piece->clear();
  return status;
}

absl::Status WriteTraceFile(const Trace& trace, const Notes& notes, uint64_t began_ns, FileSink* file) {
  std::string piece = Header(RecordBytes(trace, notes), began_ns, HasNotes(notes));
  absl::Status status;
  RecordLister lister(trace, notes, [&](const unsigned char* record, size_t length) {
    piece.append(reinterpret_cast<const char*>(record), length);
    if (piece.size() >= kPieceBytes) status = Flush(&piece, file);
    return status.ok();
  });
  lister.List();
  return status.ok() ? Flush(&piece, file) : status;
}

}  // namespace

absl::Status WriteRecording(const Trace& trace, const Notes& notes, uint64_t began_ns, const std::string& path) {
  FileSink file(path);
  std::string text;
  if (absl::EndsWith(path, ".csv")) text = FormatEventCsv(trace);
  absl::Status status = text.empty() ? WriteTraceFile(trace, notes, began_ns, &file) : Flush(&text, &file);
  if (status.ok()) status = file.Close();
  return status;
}

}  // namespace hotpack
