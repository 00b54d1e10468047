// Decodes the records of a trace file (docs/trace_format.md), for the reader of whole files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "profiler/trace_file.h"

namespace hotpack {

// Reads one file's records in order. Not thread-safe.
class RecordReader {
 public:
  // `bytes`: the file up to its committed length. `begin`: position of the first record. `notes`: the file may contain
  // notes.
  RecordReader(std::string_view bytes, size_t begin, bool notes) : bytes_(bytes), at_(begin), with_notes_(notes) {}

  bool AtEnd() const { return at_ == bytes_.size(); }

  // Decodes the next record and adds it to the events or notes of *file. Returns false if it is malformed: fault_at()
  // is the position of the bad byte, reason() the reason, and the reader does not move. O(bytes of the record).
  bool Next(TraceFile* file);
  size_t fault_at() const { return fault_at_; }
  const std::string& reason() const { return reason_; }
  bool is_incomplete() const { return is_incomplete_; }  // the bytes end inside the record

 private:
  enum class Fault { kNone, kMalformed };

  Fault Fail(size_t at, std::string reason);
  Fault Short() {
    is_incomplete_ = true;
    return Fail(at_, "the last record is incomplete");
  }
  Fault Byte(uint8_t* value);
  Fault Varint(uint64_t limit, const char* what, uint64_t* value);
  Fault Difference(const char* what, uint64_t* value);
  Fault Context(uint8_t tag, Event* event);

  Fault EventRecord(uint8_t tag, Event* event);
  Fault Allocation(uint8_t tag, Event* event);
  Fault Release(Event* event);

  Fault NoteRecord(uint8_t tag, Event* context, TraceFile* file);
  Fault NameOf(const Notes& notes, NameOrdinal* name);
  Fault LiveBlock(uint64_t* id);
  Fault Name(Notes* notes);
  Fault LaunchNote(const Event& context, uint64_t position, Notes* notes);
  Fault Work(Notes* notes);
  Fault Range(const Event& context, uint64_t position, Notes* notes);
  Fault Stack(Notes* notes);
  Fault Memory(const Event& context, uint64_t position, Notes* notes);

  std::string_view bytes_;
  size_t at_;
  const bool with_notes_;
  size_t cursor_ = 0;  // inside the record at at_
  size_t fault_at_ = 0;
  std::string reason_;
  bool is_incomplete_ = false;
  Event last_;  // the next record is coded relative to it
  uint64_t last_id_ = UINT64_MAX;
  uint64_t last_end_ = 0;
  // Size of each allocated block, 0 once it is released (an id is not used twice).
  absl::flat_hash_map<uint64_t, uint64_t> blocks_;
  absl::flat_hash_set<uint64_t> with_stack_;
};

}  // namespace hotpack
