// A linear program with some integer columns, and its text for solvers: CPLEX LP and free MPS, which CBC and HiGHS
// read.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hotpack::remat {

struct Column {
  std::string name;  // letters, digits and underscores, a letter first; unique
  double lower = 0;  // ≥ 0
  double upper = 1;  // finite
  bool integer = false;
  double cost = 0;
};

enum class Sense : uint8_t { kAtMost, kAtLeast, kEqual };

struct Row {
  Sense sense = Sense::kAtMost;
  double right = 0;
  std::vector<std::pair<int32_t, double>> terms;  // column, factor; no column twice
};

// Minimise the sum of the columns' costs.
struct LinearProgram {
  std::vector<std::string> comments;  // one line each, at the top of the text
  std::vector<Column> columns;
  std::vector<Row> rows;  // row I is called rI in the text, from 0
};

enum class ProgramFormat : uint8_t { kLp, kMps };

// Returns the text of a program; equal programs have equal texts. No line is longer than 255 bytes. Numbers have as
// many digits as are needed to read them back unchanged. O(length). Thread-safe.
std::string FormatProgram(const LinearProgram& program, ProgramFormat format);

}  // namespace hotpack::remat
