// Reads the section "# Columns" of HiGHS's solution files, which has one line for each column of the model.
//
//   raw style      # Columns 4             NAME VALUE          all columns
//   sparse style   # Columns -2            NAME VALUE INDEX    columns that are not zero; up to HiGHS 1.15
//                  # Columns -2 sparse     the same; from HiGHS 1.16 on
//
// Up to 1.15 a sparse section without lines has the head "# Columns 0". A raw section has that head only for a model
// without columns. So no column can be missing in either case.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace hotpack {

struct HighsColumn {
  absl::string_view name;   // both point into the line
  absl::string_view value;  // not yet a number
};

// Reads one section line by line. Not thread-safe.
class HighsColumns {
 public:
  // Returns whether `line` is intended as the head of the section.
  static bool IsHead(absl::string_view line);

  // Returns nothing if the head is malformed.
  static std::optional<HighsColumns> FromHead(absl::string_view line);

  int64_t count() const { return count_; }  // lines that follow the head, from 0
  bool sparse() const { return sparse_; }   // columns without a line are zero

  // Reads the next line. Returns the reason if it refuses the line: unexpected words, an invalid index, or an index
  // that occurred before.
  std::string Read(absl::string_view line, HighsColumn* column);

  // Checks `line`, the one after the last column. Returns the reason if it is a further column: neither blank nor the
  // head of a section.
  std::string CheckLineAfter(absl::string_view line) const;

 private:
  HighsColumns(int64_t count, bool sparse) : count_(count), sparse_(sparse) {}

  int64_t count_;
  bool sparse_;
  absl::flat_hash_set<int64_t> indexes_;  // sparse style only
};

}  // namespace hotpack
