// From a file to its picture and its report: the common part of `hotpack report`, `hotpack export --format svg` and
// `hotpack run --report`.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tools/report/page.h"
#include "tools/report/report_model.h"

namespace hotpack {

struct ReadReportModelResult {
  std::optional<TraceFile> file;  // nothing: a packing instance
  ReportModel model;
  std::string remark;  // what of the recording is not in it; empty: nothing
};

// Reads and packs a recording (any of tools/formats/any_recording.h) or a minimalloc CSV. Errors are one line, "FILE:
// reason" or as of profiler/trace_file.h.
absl::StatusOr<ReadReportModelResult> ReadReportModel(const std::string& path, const ReportModelOptions& options);

struct ReportOptions {
  std::string path;               // of the recording
  std::string out;                // empty: standard output
  std::string title;              // of the page; empty: the recorded program's name, or the recording's
  std::string command;            // the command that ran; empty if unknown
  nlohmann::ordered_json stats;   // of that run, or null
  nlohmann::ordered_json budget;  // as in PageInput
  int64_t time_limit_ns = 1'000'000'000;
  size_t block_limit = kPageBlocks;
  bool avoid_stream_edges = true;  // as in ReportModelOptions
  bool peers = true;               // simulate the other allocators
};

// Writes the page. The old file stays until the page is complete (tools/cli/file_sink.h). *summary: one line about it.
absl::Status WriteReport(const ReportOptions& options, std::string* summary);

}  // namespace hotpack
