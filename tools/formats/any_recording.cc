#include "tools/formats/any_recording.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/formats/minimalloc_import.h"
#include "tools/formats/rmm_log.h"
#include "tools/formats/snapshot_import.h"
#include "tools/recording/recording_builder.h"

namespace hotpack {
namespace {

// No control characters but those of lines: what is not ASCII may be UTF-8.
bool IsText(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return (code >= 0x20 && code != 0x7f) || (code >= '\t' && code <= '\r');
  });
}

// "1 release", "2 releases".
std::string Count(uint64_t count, const std::string& noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

void AddTo(std::string* list, const std::string& item) { absl::StrAppend(list, list->empty() ? "" : ", ", item); }

constexpr size_t kTextBytes = 256;  // of a file's beginning, which tell whether it is text

// The common part of all logs.
template <typename Log>
std::string Summary(const std::string& what, const Log& log) {
  std::string text = absl::StrCat(what, ": ", Count(log.allocations, "allocation"));
  if (log.live_before > 0) absl::StrAppend(&text, " and ", Count(log.live_before, "block"), " from before");
  absl::StrAppend(&text, ", ", UnreleasedBlocks(log.trace), " not released");
  if (log.missed_releases > 0) {
    absl::StrAppend(&text, ", ", Count(log.missed_releases, "release"), " missing (put in before the next use)");
  }
  return text;
}

AnyRecording FromImport(Imported imported) {
  AnyRecording recording;
  recording.what = imported.summary;
  recording.file.trace = std::move(imported.trace);
  recording.file.notes = std::move(imported.notes);
  recording.file.origin.created_ns = imported.began_ns;
  if (!imported.left_out.empty()) recording.remark = "left out: " + imported.left_out;
  return recording;
}

}  // namespace

absl::StatusOr<Imported> ImportSnapshot(const std::string& path, std::optional<int> device, ByteSource source) {
  absl::StatusOr<ImportedSnapshot> snapshot = ReadSnapshot(std::move(source), path, device);
  if (!snapshot.ok()) return snapshot.status();
  Imported imported;
  imported.summary = Summary(absl::StrCat("PyTorch snapshot, device ", snapshot->device), *snapshot);
  if (snapshot->failed > 0) AddTo(&imported.left_out, Count(snapshot->failed, "request") + " that ran out of memory");
  for (size_t i = 0; i < snapshot->entries.size(); ++i) {
    if (static_cast<int>(i) == snapshot->device || snapshot->entries[i] == 0) continue;
    AddTo(&imported.left_out, absl::StrCat("device ", i, " (", snapshot->entries[i], " entries, --device ", i, ")"));
  }
  imported.began_ns = snapshot->began_ns;
  imported.notes = std::move(snapshot->notes);
  imported.trace = std::move(snapshot->trace);
  return imported;
}

absl::StatusOr<Imported> ImportRmmLog(const std::string& path, ByteSource source) {
  absl::StatusOr<ImportedLog> log = ReadRmmLog(std::move(source), path);
  if (!log.ok()) return log.status();
  Imported imported;
  imported.summary = Summary("RMM log", *log);
  if (log->failed > 0) AddTo(&imported.left_out, Count(log->failed, "request") + " that ran out of memory");
  if (log->is_cut) AddTo(&imported.left_out, "the last line, which is cut");
  imported.trace = std::move(log->trace);
  return imported;
}

bool LooksLikeSnapshot(std::string_view begin) {
  return begin.size() >= 2 && begin[0] == '\x80' && begin[1] >= 2 && begin[1] <= 5;
}

bool LooksLikeRmmLog(std::string_view begin) { return begin.substr(0, kRmmLogHeader.size()) == kRmmLogHeader; }

std::string OtherKindOfFile(std::string_view begin) {
  struct Kind {
    std::string_view begin;
    const char* text;
  };
  static constexpr Kind kKinds[] = {
      {"\x89hotplan", "a plan file, which has no requests in it: hotpack show prints its figures"},
      {"\x1f\x8b", "compressed by gzip: unpack it first"},
      {"\x28\xb5\x2f\xfd", "compressed by zstd: unpack it first"},
      {"\xfd\x37zXZ", "compressed by xz: unpack it first"},
      {"PK\x03\x04", "a zip archive, such as torch.save writes: no recording is in it"},
      {"\x7f\x45LF", "a program or a library: hotpack run --trace FILE -- PROGRAM records it"},
      {"{", "JSON: hotpack plan reads graphs; a snapshot is a pickle, not JSON"},
      {"[", "JSON: hotpack plan reads graphs; a snapshot is a pickle, not JSON"},
      {"<!DOCTYPE html", "an HTML page: hotpack report writes such pages of recordings"},
      {"SQLite format 3", "a database, such as nsys writes: hotpack reads none"},
  };
  for (const Kind& kind : kKinds) {
    if (begin.substr(0, kind.begin.size()) == kind.begin) return kind.text;
  }
  if (begin.empty()) return "empty";
  return IsText(begin.substr(0, kTextBytes)) ? "" : "neither a recording nor a snapshot, and no text such as a CSV";
}

absl::StatusOr<AnyRecording> ParseAnyRecording(std::string_view contents, const std::string& path) {
  if (LooksLikeSnapshot(contents) || LooksLikeRmmLog(contents)) {
    absl::StatusOr<Imported> imported = LooksLikeSnapshot(contents)
                                            ? ImportSnapshot(path, std::nullopt, MemorySource(contents))
                                            : ImportRmmLog(path, MemorySource(contents));
    if (!imported.ok()) return imported.status();
    return FromImport(*std::move(imported));
  }
  AnyRecording recording;
  if (RecogniseFormat(contents) == FileFormat::kTraceFile) {
    uint64_t committed = 0;
    absl::StatusOr<TraceFile> file = ParseCutTraceFile(contents, path, &committed);
    if (!file.ok()) return file.status();
    recording.file = *std::move(file);
    if (committed > contents.size()) {
      recording.remark = absl::StrCat("the file is cut: read are the events in its first ", contents.size(), " of ",
                                      committed, " bytes");
    }
    return recording;
  }
  const bool other = RecogniseFormat(contents) == FileFormat::kOther;
  if (const std::string kind = other ? OtherKindOfFile(contents) : ""; !kind.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is ", kind));
  }
  if (other && LooksLikeMinimalloc(contents)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is a packing instance, no recording: hotpack pack, report and verify take it, and hotpack import"));
  }
  absl::StatusOr<TraceFile> file = ParseTrace(contents, path);
  if (!file.ok()) return file.status();
  recording.file = *std::move(file);
  return recording;
}

absl::StatusOr<AnyRecording> LoadAnyRecording(const std::string& path) {
  absl::StatusOr<std::string> contents = ReadWholeFile(path);
  if (!contents.ok()) return contents.status();
  return ParseAnyRecording(*contents, path);
}

absl::StatusOr<TraceFile> LoadForCommand(const char* command, const std::string& path) {
  absl::StatusOr<AnyRecording> recording = LoadAnyRecording(path);
  if (!recording.ok()) return recording.status();
  if (!recording->remark.empty()) {
    fprintf(stderr, "hotpack %s: %s: %s\n", command, path.c_str(), recording->remark.c_str());
  }
  return std::move(recording->file);
}

}  // namespace hotpack
