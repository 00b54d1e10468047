#include "packer/solution_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "packer/highs_columns.h"

namespace hotpack {
namespace {

constexpr absl::string_view kCbcStatusEnd = " - objective value ";

std::string Quoted(absl::string_view text) {
  constexpr size_t kLongest = 40;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kLongest)), text.size() > kLongest ? "..." : "", "'");
}

absl::string_view FirstLine(absl::string_view text) {
  return absl::StripTrailingAsciiWhitespace(text.substr(0, text.find('\n')));
}

struct Word {
  absl::string_view text;
  size_t column = 1;  // of its first byte, from 1
};

// The lines of a file, and the position of an error.
class Lines {
 public:
  Lines(absl::string_view text, absl::string_view name) : rest_(text), name_(name) {}

  // Returns false at the end of the text.
  bool Next() {
    if (rest_.empty()) return false;
    const size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(end == absl::string_view::npos ? rest_.size() : end + 1);
    if (!line_.empty() && line_.back() == '\r') line_.remove_suffix(1);
    ++number_;
    return true;
  }

  absl::string_view line() const { return line_; }

  std::vector<Word> Words() const {
    std::vector<Word> words;
    size_t at = 0;
    while ((at = line_.find_first_not_of(" \t", at)) != absl::string_view::npos) {
      const size_t end = std::min(line_.find_first_of(" \t", at), line_.size());
      words.push_back({line_.substr(at, end - at), at + 1});
      at = end;
    }
    return words;
  }

  // `text` must be a part of the line.
  Word WordOf(absl::string_view text) const { return {text, static_cast<size_t>(text.data() - line_.data()) + 1}; }

  absl::Status Error(size_t column, absl::string_view reason) const {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ":", std::max<size_t>(number_, 1), ":", column, ": ", reason));
  }

  // An error about something missing at the end.
  absl::Status ErrorAtEnd(absl::string_view reason) const { return Error(line_.size() + 1, reason); }

 private:
  absl::string_view rest_;
  const absl::string_view name_;
  absl::string_view line_;
  size_t number_ = 0;
};

// Collects the variables of one solution.
class Variables {
 public:
  Variables(const Lines& lines, size_t blocks) : lines_(lines), x_(blocks), given_(blocks, false) {}

  absl::Status Add(const Word& name, const Word& value) {
    double number = 0;
    if (!absl::SimpleAtod(value.text, &number) || !std::isfinite(number)) {
      return lines_.Error(value.column, absl::StrCat("the value is not a number: ", Quoted(value.text)));
    }
    if (absl::StartsWith(name.text, "u_")) return AddHeight(name, number);
    int64_t block = 0;
    if (name.text.size() < 2 || name.text[0] != 'x' || !ParseInteger(name.text.substr(1), &block)) {
      return absl::OkStatus();  // another variable or, from CBC, a row
    }
    if (static_cast<size_t>(block) >= x_.size()) {
      return lines_.Error(name.column, absl::StrCat("there is no block for ", Quoted(name.text), ": the instance has ",
                                                    x_.size(), " blocks"));
    }
    if (given_[block]) return lines_.Error(name.column, absl::StrCat("a second value for ", Quoted(name.text)));
    given_[block] = true;
    x_[block] = number;
    return absl::OkStatus();
  }

  // Returns whether the model (packer/model_writer.h) has such a name: u_UNIT_W, xI, kI or zI_J. Add checks the first
  // two further.
  bool IsKnown(const Word& name) const {
    if (absl::StartsWith(name.text, "u_")) return true;
    const absl::string_view rest = name.text.substr(1);
    int64_t number = 0;
    if (absl::StartsWith(name.text, "x")) return !rest.empty() && ParseInteger(rest, &number);
    if (absl::StartsWith(name.text, "k")) return IsBlock(rest);
    const size_t middle = rest.find('_');
    return absl::StartsWith(name.text, "z") && middle != absl::string_view::npos && IsBlock(rest.substr(0, middle)) &&
           IsBlock(rest.substr(middle + 1));
  }

  // Moves all variables into `solution`. `zero_if_missing`: the format omits variables that are zero.
  absl::Status Finish(bool zero_if_missing, SolverSolution* solution) {
    if (!height_) return lines_.ErrorAtEnd("there is no height: a variable named like u_512_2048 is missing");
    for (size_t block = 0; block < x_.size() && !zero_if_missing; ++block) {
      if (!given_[block]) return lines_.ErrorAtEnd(absl::StrCat("the variable x", block, " is missing"));
    }
    solution->height = *height_;
    solution->unit = unit_;
    solution->big = big_;
    solution->x = std::move(x_);
    return absl::OkStatus();
  }

 private:
  // Parses a nonnegative decimal integer.
  static bool ParseInteger(absl::string_view text, int64_t* number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    return error == std::errc() && end == text.data() + text.size() && absl::ascii_isdigit(text[0]);
  }

  bool IsBlock(absl::string_view text) const {
    int64_t block = 0;
    return !text.empty() && ParseInteger(text, &block) && static_cast<size_t>(block) < x_.size();
  }

  absl::Status AddHeight(const Word& name, double number) {
    const absl::string_view rest = name.text.substr(2);
    const size_t middle = rest.find('_');
    if (middle == absl::string_view::npos || middle == 0 || middle + 1 == rest.size() ||
        !ParseInteger(rest.substr(0, middle), &unit_) || !ParseInteger(rest.substr(middle + 1), &big_) || unit_ < 1) {
      return lines_.Error(name.column, absl::StrCat("the height is not named like u_512_2048: ", Quoted(name.text)));
    }
    if (height_) return lines_.Error(name.column, "a second height");
    height_ = number;
    return absl::OkStatus();
  }

  const Lines& lines_;
  std::vector<double> x_;
  std::vector<bool> given_;
  std::optional<double> height_;
  Bytes unit_ = 1;
  int64_t big_ = 0;
};

absl::StatusOr<SolverSolution> ParseCbc(Lines lines, size_t blocks) {
  SolverSolution solution;
  lines.Next();
  solution.status = std::string(lines.line().substr(0, lines.line().find(kCbcStatusEnd)));
  solution.optimal = absl::StartsWith(solution.status, "Optimal");
  solution.has_solution = solution.optimal || (absl::StartsWith(solution.status, "Stopped") &&
                                               !absl::StrContains(solution.status, "no integer solution"));
  if (!solution.has_solution) return solution;
  Variables variables(lines, blocks);
  while (lines.Next()) {
    std::vector<Word> words = lines.Words();
    if (words.empty()) continue;
    if (words.front().text == "**") words.erase(words.begin());  // a value outside its bounds
    if (words.size() != 4) {
      return lines.Error(1, absl::StrCat("expected index, name, value and reduced cost, found ", Quoted(lines.line())));
    }
    if (absl::Status status = variables.Add(words[1], words[2]); !status.ok()) return status;
  }
  if (absl::Status status = variables.Finish(/*zero_if_missing=*/true, &solution); !status.ok()) return status;
  return solution;
}

absl::Status ParseHighsColumns(Lines* lines, size_t blocks, SolverSolution* solution) {
  std::optional<HighsColumns> columns = HighsColumns::FromHead(lines->line());
  if (!columns) return lines->Error(1, absl::StrCat("expected the number of columns, found ", Quoted(lines->line())));
  Variables variables(*lines, blocks);
  for (int64_t i = 0; i < columns->count(); ++i) {
    if (!lines->Next())
      return lines->ErrorAtEnd(absl::StrCat("the file ends within its ", columns->count(), " columns"));
    HighsColumn column;
    if (const std::string fault = columns->Read(lines->line(), &column); !fault.empty()) return lines->Error(1, fault);
    const Word name = lines->WordOf(column.name), value = lines->WordOf(column.value);
    // A misspelt name would leave its variable at zero.
    if (columns->sparse() && !variables.IsKnown(name)) {
      return lines->Error(name.column, absl::StrCat("the model has no variable ", Quoted(name.text)));
    }
    if (absl::Status status = variables.Add(name, value); !status.ok()) return status;
  }
  if (absl::Status status = variables.Finish(columns->sparse(), solution); !status.ok()) return status;
  if (!lines->Next()) return absl::OkStatus();
  const std::string fault = columns->CheckLineAfter(lines->line());
  return fault.empty() ? absl::OkStatus() : lines->Error(1, fault);
}

absl::StatusOr<SolverSolution> ParseHighs(Lines lines, size_t blocks) {
  SolverSolution solution;
  lines.Next();
  if (!lines.Next()) return lines.ErrorAtEnd("the model status is missing");
  solution.status = std::string(absl::StripAsciiWhitespace(lines.line()));
  solution.optimal = solution.status == "Optimal";
  bool primal = false;
  while (lines.Next()) {
    const absl::string_view line = absl::StripAsciiWhitespace(lines.line());
    if (line == "# Primal solution values") {
      primal = true;
      if (!lines.Next()) break;
      solution.has_solution = absl::StripAsciiWhitespace(lines.line()) == "Feasible";
      if (!solution.has_solution) return solution;
    } else if (primal && HighsColumns::IsHead(line)) {
      if (absl::Status status = ParseHighsColumns(&lines, blocks, &solution); !status.ok()) return status;
      return solution;
    }
  }
  return lines.ErrorAtEnd(primal ? "the columns are missing" : "the primal solution values are missing");
}

// The table's columns are as wide as its head says. An empty cell leaves no word, so words cannot be counted.
absl::StatusOr<SolverSolution> ParseHighsPretty(Lines lines, size_t blocks) {
  SolverSolution solution;
  lines.Next();
  if (!lines.Next()) return lines.ErrorAtEnd("the table is missing");
  const size_t upper = lines.line().find("Upper");
  const size_t primal = lines.line().find("Primal");
  if (upper == absl::string_view::npos || primal == absl::string_view::npos || primal < upper) {
    return lines.Error(1, absl::StrCat("expected the head of the table, found ", Quoted(lines.line())));
  }
  const size_t begin = upper + 5, end = primal + 6;
  Variables variables(lines, blocks);
  bool values = true;
  while (lines.Next() && absl::StripAsciiWhitespace(lines.line()) != "Rows") {
    const std::vector<Word> words = lines.Words();
    if (words.size() < 4 || lines.line().size() < end) {
      return lines.Error(1, absl::StrCat("expected a line of the table, found ", Quoted(lines.line())));
    }
    const absl::string_view cell = lines.line().substr(begin, end - begin);
    const Word value{absl::StripAsciiWhitespace(cell), begin + 1 + std::min(cell.find_first_not_of(' '), cell.size())};
    values &= !value.text.empty();
    if (!values) continue;
    if (absl::Status status = variables.Add(words.back(), value); !status.ok()) return status;
  }
  constexpr absl::string_view kStatus = "Model status:";
  while (lines.Next() && !absl::StartsWith(lines.line(), kStatus)) {
  }
  if (!absl::StartsWith(lines.line(), kStatus)) return lines.ErrorAtEnd("the model status is missing");
  solution.status = std::string(absl::StripAsciiWhitespace(lines.line().substr(kStatus.size())));
  solution.optimal = solution.status == "Optimal";
  solution.has_solution = values;
  if (!values) return solution;
  if (absl::Status status = variables.Finish(/*zero_if_missing=*/false, &solution); !status.ok()) return status;
  return solution;
}

}  // namespace

SolutionFormat RecogniseSolution(absl::string_view text) {
  const absl::string_view line = FirstLine(text);
  if (line == "Model status") return SolutionFormat::kHighs;
  if (line == "Columns") return SolutionFormat::kHighsPretty;
  if (absl::StrContains(line, kCbcStatusEnd)) return SolutionFormat::kCbc;
  return absl::StrContains(line, ",") ? SolutionFormat::kPlacementCsv : SolutionFormat::kOther;
}

absl::StatusOr<SolverSolution> ParseSolverSolution(absl::string_view text, absl::string_view name, size_t blocks) {
  const Lines lines(text, name);
  switch (RecogniseSolution(text)) {
    case SolutionFormat::kCbc:
      return ParseCbc(lines, blocks);
    case SolutionFormat::kHighs:
      return ParseHighs(lines, blocks);
    case SolutionFormat::kHighsPretty:
      return ParseHighsPretty(lines, blocks);
    case SolutionFormat::kPlacementCsv:
    case SolutionFormat::kOther:
      break;
  }
  return lines.Error(1, "neither a solution of CBC or HiGHS nor a minimalloc CSV");
}

absl::StatusOr<RoundedSolution> RoundSolution(const SolverSolution& solution, const Instance& instance) {
  constexpr double kLargest = 4611686018427387904.0;  // 2^62
  RoundedSolution rounded;
  for (size_t block = 0; block < solution.x.size(); ++block) {
    const double nearest = std::round(solution.x[block]);
    const double room = kLargest - static_cast<double>(instance.blocks[block].size);
    if (!(std::abs(nearest) * static_cast<double>(solution.unit) < room)) {
      return absl::InvalidArgumentError(absl::StrCat("x", block, " = ", solution.x[block], " is beyond any address"));
    }
    rounded.distance = std::max(rounded.distance, std::abs(solution.x[block] - nearest));
    const Offset offset = static_cast<int64_t>(nearest) * solution.unit;
    rounded.placement.offsets.push_back(offset);
    rounded.placement.height = std::max(rounded.placement.height, offset + instance.blocks[block].size);
  }
  return rounded;
}

absl::StatusOr<Placement> ParsePlacementCsv(absl::string_view text, absl::string_view name, const Instance& instance,
                                            const std::vector<std::string>& ids) {
  absl::StatusOr<NamedInstance> read = ParseCsv(text, name);
  if (!read.ok()) return read.status();
  // Blocks follow the head without empty lines between them, so block k is in line k + 2.
  const auto error = [&](size_t row, const std::string& reason) {
    return absl::InvalidArgumentError(absl::StrCat(name, ":", row + 2, ":1: ", reason));
  };
  if (read->offsets.empty() && !read->ids.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ":1:1: there is no column offset"));
  }
  const auto id_of = [&](size_t block) { return ids.empty() ? absl::StrCat(block) : ids[block]; };
  absl::flat_hash_map<std::string, size_t> block_of;
  for (size_t block = 0; block < instance.blocks.size(); ++block) block_of.emplace(id_of(block), block);
  Placement placement;
  placement.offsets.assign(instance.blocks.size(), kNotPinned);
  for (size_t row = 0; row < read->ids.size(); ++row) {
    const auto found = block_of.find(read->ids[row]);
    if (found == block_of.end()) return error(row, absl::StrCat("the instance has no block ", Quoted(read->ids[row])));
    const Block& given = read->instance.blocks[row];
    const Block& block = instance.blocks[found->second];
    if (given.size != block.size || given.residency.front().begin != block.residency.front().begin ||
        given.residency.back().end != block.residency.back().end) {
      return error(row,
                   absl::StrCat("block ", Quoted(read->ids[row]), " has another size or residency in the instance"));
    }
    const Offset offset = read->offsets[row];
    if (offset == kNotPinned) return error(row, absl::StrCat("block ", Quoted(read->ids[row]), " has no offset"));
    placement.offsets[found->second] = offset;
    placement.height = std::max(placement.height, offset + block.size);
  }
  for (size_t block = 0; block < instance.blocks.size(); ++block) {
    if (placement.offsets[block] != kNotPinned) continue;
    return error(read->ids.size(), absl::StrCat("block ", Quoted(id_of(block)), " is missing"));
  }
  return placement;
}

}  // namespace hotpack
