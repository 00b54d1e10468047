// Instances and placements as minimalloc CSV files: one line a block, columns named in the first line.
//
//   id,lower,upper,size[,alignment,hint,gaps,offset]
//   conv1,0,9,4096,512,-1,3-5 7-8,0
//
//   id         any text without a comma; different for every block. Also called buffer or buffer_id
//   lower      first clock value of the residency, ≥ 0. Also called begin or start
//   upper      the clock value after the last; as a column `end` it is the last one itself
//   size       bytes, ≥ 1
//   alignment  bytes, ≥ 1
//   hint       ignored
//   gaps       intervals a-b, separated by spaces, within [lower, upper), in which the block is not resident; b is the
//              clock value after the gap, or its last one if there is a column `end`. Gaps that take away only a part
//              of the block's bytes (a-b@c:d) are refused
//   offset     bytes; -1 or nothing: none. It is what a solver found, so reading it pins nothing
//
// Columns come in any order; the first four are needed, others are refused. Lines end with LF or CRLF; empty lines are
// allowed at the end only. Numbers are decimal, clock values up to 2^61, sizes up to 2^62 in sum.
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
  std::vector<Offset> offsets;   // by block, kNotPinned where the file has none; empty if there is no such column
};

// `name` stands for the file in errors, which are InvalidArgument with exactly the text "NAME:LINE:COLUMN: reason"
// (from 1; the column counts bytes). O(n log n). Thread-safe.
absl::StatusOr<NamedInstance> ParseCsv(absl::string_view text, absl::string_view name);

// The same for a file; one that cannot be read is an error of the same form.
absl::StatusOr<NamedInstance> ReadCsvFile(const std::string& path);

// Columns id, lower, upper, size, alignment if any is not 1, gaps if any block has some, offset if `placement` is not
// null. `ids` is empty (the blocks are then numbered from 0) or has one a block. A block with several residency
// intervals gets gaps; those that touch become one. Thread-safe.
std::string FormatCsv(const Instance& instance, const std::vector<std::string>& ids, const Placement* placement);

// Writes all of `text` or leaves what was there. The error is "PATH: reason". A file that exists and is not a regular
// one (a pipe, a terminal) is written to directly.
absl::Status WriteTextFile(const std::string& path, absl::string_view text);

}  // namespace hotpack
