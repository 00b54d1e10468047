// Instances and placements as minimalloc CSV files: one line per block, column names in the first line.
//
//   id,lower,upper,size[,alignment,hint,gaps,offset]
//   conv1,0,9,4096,512,-1,3-5 7-8,0
//
//   id         any text without a comma; different for every block. Also called buffer or buffer_id
//   lower      first clock value of the residency, ≥ 0. Also called begin or start
//   upper      the clock value after the last one; a column `end` contains the last one itself
//   size       bytes, ≥ 1
//   alignment  bytes, ≥ 1
//   hint       ignored
//   gaps       intervals a-b, separated by spaces, within [lower, upper), in which the block is not resident. b is the
//              clock value after the gap; with a column `end`, the gap's last one. Gaps that remove only a part of the
//              block's bytes (a-b@c:d) are refused
//   offset     bytes; -1 or empty: none. It is a solver's result, so reading it pins no block
//
// Columns may come in any order. The first four are required, unknown ones are refused. Lines end with LF or CRLF.
// Empty lines are allowed only at the end. Numbers are decimal: clock values up to 2^61, sizes up to 2^62 in total.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "packer/types.h"

namespace hotpack {

struct NamedInstance {
  Instance instance;
  std::vector<std::string> ids;  // by block
  std::vector<Offset> offsets;   // by block, kNotPinned if the file has none; empty if there is no such column
};

// Parses `text`. Errors are InvalidArgument with exactly the text "NAME:LINE:COLUMN: reason" (from 1; the column counts
// bytes); `name` stands for the file there. O(n log n). Thread-safe.
absl::StatusOr<NamedInstance> ParseCsv(absl::string_view text, absl::string_view name);

// The same for a file. If it cannot be read, returns an error of the same form.
absl::StatusOr<NamedInstance> ReadCsvFile(const std::string& path);

// Formats an instance. Columns: id, lower, upper, size; alignment if any is not 1; gaps if any block has some; offset
// if `placement` is not null. `ids` is empty (blocks are then numbered from 0) or has one entry per block. A block with
// several residency intervals gets gaps; adjacent ones are merged. Thread-safe.
std::string FormatCsv(const Instance& instance, const std::vector<std::string>& ids, const Placement* placement);

// Writes all of `text`, or leaves the old contents. The error is "PATH: reason". If the file exists and is not a
// regular one (a pipe, a terminal), writes to it directly.
absl::Status WriteTextFile(const std::string& path, absl::string_view text);

}  // namespace hotpack
