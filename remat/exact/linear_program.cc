#include "remat/exact/linear_program.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace hotpack::remat {
namespace {

constexpr size_t kTermsInLine = 4;

// Returns enough digits to read the value back, without an exponent for small integers.
std::string Number(double value) {
  char text[40];
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  const std::to_chars_result end = whole ? std::to_chars(text, text + sizeof(text), static_cast<int64_t>(value))
                                         : std::to_chars(text, text + sizeof(text), value);
  return std::string(text, end.ptr);
}

void AppendTerms(const LinearProgram& program, const std::vector<std::pair<int32_t, double>>& terms,
                 std::string* text) {
  for (size_t i = 0; i < terms.size(); ++i) {
    const auto [column, factor] = terms[i];
    if (i > 0 && i % kTermsInLine == 0) absl::StrAppend(text, "\n  ");
    absl::StrAppend(text, factor < 0 ? " - " : " + ", Number(std::abs(factor)), " ",
                    program.columns[static_cast<size_t>(column)].name);
  }
}

std::string FormatLp(const LinearProgram& program) {
  std::string text;
  for (const std::string& comment : program.comments) absl::StrAppend(&text, "\\ ", comment, "\n");
  absl::StrAppend(&text, "Minimize\n obj:");
  std::vector<std::pair<int32_t, double>> costs;
  for (size_t c = 0; c < program.columns.size(); ++c) {
    if (program.columns[c].cost != 0) costs.push_back({static_cast<int32_t>(c), program.columns[c].cost});
  }
  // Some readers reject an objective without terms.
  if (costs.empty() && !program.columns.empty()) costs.push_back({0, 0.0});
  AppendTerms(program, costs, &text);
  absl::StrAppend(&text, "\nSubject To\n");
  for (size_t r = 0; r < program.rows.size(); ++r) {
    const Row& row = program.rows[r];
    absl::StrAppend(&text, " r", r, ":");
    AppendTerms(program, row.terms, &text);
    const char* sense = row.sense == Sense::kAtMost ? " <= " : row.sense == Sense::kAtLeast ? " >= " : " = ";
    absl::StrAppend(&text, sense, Number(row.right), "\n");
  }
  absl::StrAppend(&text, "Bounds\n");
  for (const Column& column : program.columns) {
    absl::StrAppend(&text, " ", Number(column.lower), " <= ", column.name, " <= ", Number(column.upper), "\n");
  }
  absl::StrAppend(&text, "Generals\n");
  for (const Column& column : program.columns) {
    if (column.integer) absl::StrAppend(&text, " ", column.name, "\n");
  }
  absl::StrAppend(&text, "End\n");
  return text;
}

std::string FormatMps(const LinearProgram& program) {
  std::string text;
  for (const std::string& comment : program.comments) absl::StrAppend(&text, "* ", comment, "\n");
  absl::StrAppend(&text, "NAME hotpack FREE\nROWS\n N obj\n");
  std::vector<std::vector<std::pair<int32_t, double>>> rows_of(program.columns.size());
  for (size_t r = 0; r < program.rows.size(); ++r) {
    const Sense sense = program.rows[r].sense;
    absl::StrAppend(&text, sense == Sense::kAtMost ? " L r" : sense == Sense::kAtLeast ? " G r" : " E r", r, "\n");
    for (const auto& [column, factor] : program.rows[r].terms)
      rows_of[static_cast<size_t>(column)].push_back({static_cast<int32_t>(r), factor});
  }
  absl::StrAppend(&text, "COLUMNS\n");
  bool integers = false;
  const auto mark = [&](bool begin) {
    if (std::exchange(integers, begin) != begin)
      absl::StrAppend(&text, " MARKER 'MARKER' ", begin ? "'INTORG'" : "'INTEND'", "\n");
  };
  for (size_t c = 0; c < program.columns.size(); ++c) {
    const Column& column = program.columns[c];
    mark(column.integer);
    // A column that is in no row must be named as well.
    if (column.cost != 0 || rows_of[c].empty())
      absl::StrAppend(&text, " ", column.name, " obj ", Number(column.cost), "\n");
    for (const auto& [row, factor] : rows_of[c])
      absl::StrAppend(&text, " ", column.name, " r", row, " ", Number(factor), "\n");
  }
  mark(false);
  absl::StrAppend(&text, "RHS\n");
  for (size_t r = 0; r < program.rows.size(); ++r) {
    if (program.rows[r].right != 0) absl::StrAppend(&text, " RHS r", r, " ", Number(program.rows[r].right), "\n");
  }
  // Every column gets both bounds, because readers differ in the default bounds of integer columns.
  absl::StrAppend(&text, "BOUNDS\n");
  for (const Column& column : program.columns) {
    absl::StrAppend(&text, " LO BND ", column.name, " ", Number(column.lower), "\n UP BND ", column.name, " ",
                    Number(column.upper), "\n");
  }
  absl::StrAppend(&text, "ENDATA\n");
  return text;
}

}  // namespace

std::string FormatProgram(const LinearProgram& program, ProgramFormat format) {
  return format == ProgramFormat::kLp ? FormatLp(program) : FormatMps(program);
}

}  // namespace hotpack::remat
