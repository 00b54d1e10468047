// A linear program, some of its columns integers, and its text for solvers: CPLEX LP and free MPS, which CBC and HiGHS
// read.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hotpack::remat {

struct Column {
  std::string name;  // letters, digits and underscores, the first one a letter; of its own
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
  std::vector<std::string> comments;  // one line each, at the head of the text
  std::vector<Column> columns;
  std::vector<Row> rows;  // rI in the text, from 0
};

enum class ProgramFormat : uint8_t { kLp, kMps };

// The same text for the same program; no line is longer than 255 bytes. Numbers have as many digits as it takes to read
// them back unchanged. O(length). Thread-safe.
std::string FormatProgram(const LinearProgram& program, ProgramFormat format);

}  // namespace hotpack::remat
