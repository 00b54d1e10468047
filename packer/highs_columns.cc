#include "packer/highs_columns.h"

#include <cstdlib>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hotpack {
namespace {

constexpr absl::string_view kHead = "# Columns";
constexpr absl::string_view kSparse = "sparse";

std::vector<absl::string_view> Words(absl::string_view line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kLongest = 40;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kLongest)), text.size() > kLongest ? "..." : "", "'");
}

}  // namespace

bool HighsColumns::IsHead(absl::string_view line) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), kHead);
}

std::optional<HighsColumns> HighsColumns::FromHead(absl::string_view line) {
  const std::vector<absl::string_view> words = Words(line);
  const bool says_sparse = words.size() == 4 && words[3] == kSparse;
  if ((words.size() != 3 && !says_sparse) || words[0] != "#" || words[1] != "Columns") return std::nullopt;
  int32_t count = 0;
  if (!absl::SimpleAtoi(words[2], &count)) return std::nullopt;
  return HighsColumns(std::abs(int64_t{count}), says_sparse || count <= 0);
}

std::string HighsColumns::Read(absl::string_view line, HighsColumn* column) {
  const std::vector<absl::string_view> words = Words(line);
  if (words.size() != (sparse_ ? 3 : 2)) {
    const absl::string_view rest = sparse_ ? ", its value and its index" : " and its value";
    return absl::StrCat("expected a name", rest, ", found ", Quoted(line));
  }
  *column = {words[0], words[1]};
  if (!sparse_) return "";
  int64_t index = 0;
  if (!absl::SimpleAtoi(words[2], &index) || index < 0) {
    return absl::StrCat("the index is not a number from 0: ", Quoted(words[2]));
  }
  if (!indexes_.insert(index).second) return absl::StrCat("a second column with the index ", index);
  return "";
}

std::string HighsColumns::CheckLineAfter(absl::string_view line) const {
  const absl::string_view text = absl::StripAsciiWhitespace(line);
  if (text.empty() || text.front() == '#') return "";
  return absl::StrCat("more than the ", count_, " columns that the head counts, found ", Quoted(line));
}

}  // namespace hotpack
