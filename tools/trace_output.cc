#include "tools/trace_output.h"

#include <cstring>

#include "absl/strings/match.h"
#include "profiler/event_csv.h"
#include "profiler/trace_record.h"
#include "tools/file_sink.h"

namespace hotpack {
namespace {

using namespace trace_format;

constexpr size_t kPieceBytes = size_t{1} << 16;

template <typename T>
void Put(std::string* out, size_t at, T value) {
  std::memcpy(out->data() + at, &value, sizeof(value));
}

// How long the records are together: the header says it, and comes before them.
uint64_t RecordBytes(const Trace& trace) {
  TraceRecordEncoder encoder;
  unsigned char record[kMaxRecordBytes];
  uint64_t bytes = 0;
  for (const Event& event : trace.events) {
    bytes += encoder.Encode(event, record);
    encoder.Accept(event);
  }
  return bytes;
}

std::string Header(uint64_t record_bytes, uint64_t began_ns) {
  std::string header(kHeaderBytes, '\0');
  std::memcpy(header.data(), kMagic, sizeof(kMagic));
  Put(&header, kVersionAt, kVersion);
  Put(&header, kHeaderBytesAt, static_cast<uint16_t>(kHeaderBytes));
  Put(&header, kStateAt, static_cast<uint32_t>(kClosed));
  Put(&header, kCommittedAt, uint64_t{kHeaderBytes} + record_bytes);
  Put(&header, kCreatedAt, began_ns);
  return header;
}

// Hands on what has been collected.
absl::Status Flush(std::string* piece, FileSink* file) {
  absl::Status status = file->Append(*piece);
  piece->clear();
  return status;
}

absl::Status WriteTraceFile(const Trace& trace, uint64_t began_ns, FileSink* file) {
  std::string piece = Header(RecordBytes(trace), began_ns);
  TraceRecordEncoder encoder;
  unsigned char record[kMaxRecordBytes];
  for (const Event& event : trace.events) {
    piece.append(reinterpret_cast<const char*>(record), encoder.Encode(event, record));
    encoder.Accept(event);
    if (piece.size() < kPieceBytes) continue;
    if (absl::Status status = Flush(&piece, file); !status.ok()) return status;
  }
  return Flush(&piece, file);
}

}  // namespace

absl::Status WriteRecording(const Trace& trace, uint64_t began_ns, const std::string& path) {
  FileSink file(path);
  std::string text;
  if (absl::EndsWith(path, ".csv")) text = FormatEventCsv(trace);
  absl::Status status = text.empty() ? WriteTraceFile(trace, began_ns, &file) : Flush(&text, &file);
  if (status.ok()) status = file.Close();
  return status;
}

}  // namespace hotpack
