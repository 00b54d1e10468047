#include "remat/exact/solver_values.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "packer/highs_columns.h"
#include "packer/solution_file.h"

namespace hotpack::remat {
namespace {

class Reader {
 public:
  Reader(absl::string_view text, absl::string_view name) : rest_(text), name_(name) {}

  absl::StatusOr<SolverValues> Cbc() {
    constexpr absl::string_view kObjective = " - objective value ";
    Next();
    const size_t at = line_.find(kObjective);
    result_.status = std::string(line_.substr(0, at));
    if (!absl::SimpleAtod(line_.substr(at + kObjective.size()), &result_.objective))
      return Fault("the objective value is no number");
    result_.optimal = absl::StartsWith(result_.status, "Optimal");
    result_.has_solution = result_.optimal || (absl::StartsWith(result_.status, "Stopped") &&
                                               !absl::StrContains(result_.status, "no integer solution"));
    result_.zero_if_missing = true;
    if (!result_.has_solution) return std::move(result_);
    while (Next()) {
      std::vector<absl::string_view> words = Words();
      if (words.empty()) continue;
      if (words.front() == "**") words.erase(words.begin());  // marks a value out of its bounds
      if (words.size() != 4) return Fault("expected index, name, value and reduced cost");
      if (absl::Status status = Add(words[1], words[2]); !status.ok()) return status;
    }
    return std::move(result_);
  }

  absl::StatusOr<SolverValues> Highs() {
    Next();
    if (!Next()) return Fault("the model status is missing");
    result_.status = std::string(absl::StripAsciiWhitespace(line_));
    result_.optimal = result_.status == "Optimal";
    while (Next() && absl::StripAsciiWhitespace(line_) != "# Primal solution values") {
    }
    if (!Next()) return Fault("the primal solution values are missing");
    result_.has_solution = absl::StripAsciiWhitespace(line_) == "Feasible";
    if (!result_.has_solution) return std::move(result_);
    while (Next()) {
      const std::vector<absl::string_view> words = Words();
      if (words.size() == 2 && words[0] == "Objective") {
        if (!absl::SimpleAtod(words[1], &result_.objective)) return Fault("the objective is no number");
      } else if (HighsColumns::IsHead(line_)) {
        return HighsSection();
      }
    }
    return Fault("the columns are missing");
  }

  absl::Status Fault(absl::string_view reason) const {
    return absl::InvalidArgumentError(absl::StrCat(name_, ":", std::max<int64_t>(number_, 1), ": ", reason));
  }

 private:
  bool Next() {
    if (rest_.empty()) return false;
    const size_t end = rest_.find('\n');
    line_ = absl::StripSuffix(rest_.substr(0, end), "\r");
    rest_.remove_prefix(end == absl::string_view::npos ? rest_.size() : end + 1);
    ++number_;
    return true;
  }
  std::vector<absl::string_view> Words() const {
    return absl::StrSplit(line_, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  }

  absl::Status Add(absl::string_view name, absl::string_view text) {
    double value = 0;
    if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) return Fault("expected a number");
    if (!result_.columns.emplace(std::string(name), value).second)
      return Fault(absl::StrCat("column ", name.substr(0, 40), " is there twice"));
    return absl::OkStatus();
  }

  absl::StatusOr<SolverValues> HighsSection() {
    std::optional<HighsColumns> columns = HighsColumns::FromHead(line_);
    if (!columns) return Fault("expected the number of columns");
    result_.zero_if_missing = result_.only_columns = columns->sparse();
    for (int64_t left = columns->count(); left > 0; --left) {
      if (!Next()) return Fault("the file ends within its columns");
      HighsColumn column;
      if (const std::string fault = columns->Read(line_, &column); !fault.empty()) return Fault(fault);
      if (absl::Status status = Add(column.name, column.value); !status.ok()) return status;
    }
    if (Next()) {
      if (const std::string fault = columns->CheckLineAfter(line_); !fault.empty()) return Fault(fault);
    }
    return std::move(result_);
  }

  absl::string_view rest_, line_;
  const absl::string_view name_;
  int64_t number_ = 0;
  SolverValues result_;
};

}  // namespace

absl::StatusOr<SolverValues> ParseSolverValues(absl::string_view text, absl::string_view name) {
  Reader reader(text, name);
  switch (RecogniseSolution(text)) {
    case SolutionFormat::kCbc:
      return reader.Cbc();
    case SolutionFormat::kHighs:
      return reader.Highs();
    case SolutionFormat::kHighsPretty:
      return reader.Fault("a solution in HiGHS's pretty style; the raw (0) and the sparse one (4) are read");
    case SolutionFormat::kPlacementCsv:
    case SolutionFormat::kOther:
      break;
  }
  return reader.Fault("not a solution of CBC or HiGHS");
}

}  // namespace hotpack::remat
