#include "packer/csv.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace hotpack {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 62;
constexpr Clock kLargestClock = Clock{1} << 61;

enum Column { kId, kLower, kUpper, kSize, kAlignment, kHint, kGaps, kOffset, kColumns };

struct ColumnName {
  absl::string_view name;
  Column column;
};
constexpr ColumnName kColumnNames[] = {
    {"id", kId},       {"buffer", kId},           {"buffer_id", kId}, {"lower", kLower}, {"begin", kLower},
    {"start", kLower}, {"upper", kUpper},         {"end", kUpper},    {"size", kSize},   {"hint", kHint},
    {"gaps", kGaps},   {"alignment", kAlignment}, {"offset", kOffset}};

struct Field {
  absl::string_view text;
  size_t column;  // of its first byte in the line, from 1
};

absl::string_view Trimmed(absl::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// A piece of the file for an error: printable, on one line, not long.
std::string Quoted(absl::string_view text) {
  constexpr size_t kLongest = 40;
  const bool cut = text.size() > kLongest;
  return absl::StrCat("'", absl::CEscape({text.data(), cut ? kLongest : text.size()}), cut ? "..." : "", "'");
}

std::vector<Field> SplitFields(absl::string_view line) {
  std::vector<Field> fields;
  size_t begin = 0;
  for (;;) {
    const size_t comma = std::min(line.find(',', begin), line.size());
    const absl::string_view whole = line.substr(begin, comma - begin);
    const absl::string_view text = Trimmed(whole);
    fields.push_back({text, begin + 1 + (text.empty() ? 0 : static_cast<size_t>(text.data() - whole.data()))});
    if (comma == line.size()) return fields;
    begin = comma + 1;
  }
}

// One pass over the text. Every method that can fail returns false with error_ set.
class Parser {
 public:
  Parser(absl::string_view text, absl::string_view name) : rest_(text), name_(name) {}

  absl::StatusOr<NamedInstance> Parse() {
    if (!ParseHeader()) return error_;
    while (NextLine()) {
      if (!ParseBlock()) return error_;
    }
    if (!error_.ok()) return error_;
    return std::move(result_);
  }

 private:
  bool Fail(size_t column, absl::string_view reason) {
    error_ = absl::InvalidArgumentError(absl::StrCat(name_, ":", line_number_, ":", column, ": ", reason));
    return false;
  }

  // False at the end of the text, and with error_ set for an empty line that is followed by another one.
  bool NextLine() {
    if (rest_.empty()) return false;
    const size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(end == absl::string_view::npos ? rest_.size() : end + 1);
    if (!line_.empty() && line_.back() == '\r') line_.remove_suffix(1);
    ++line_number_;
    if (!Trimmed(line_).empty()) return true;
    if (rest_.find_first_not_of(" \t\r\n") != absl::string_view::npos) Fail(1, "the line is empty");
    return false;
  }

  bool ParseHeader() {
    constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (rest_.substr(0, kByteOrderMark.size()) == kByteOrderMark) rest_.remove_prefix(kByteOrderMark.size());
    if (!NextLine()) {
      if (!error_.ok()) return false;
      line_number_ = 1;
      return Fail(1, "the file is empty; expected the column names id,lower,upper,size");
    }
    const std::vector<Field> fields = SplitFields(line_);
    for (size_t i = 0; i < fields.size(); ++i) {
      const auto* const found = std::find_if(std::begin(kColumnNames), std::end(kColumnNames),
                                             [&](const ColumnName& known) { return known.name == fields[i].text; });
      if (found == std::end(kColumnNames)) {
        return Fail(fields[i].column, absl::StrCat("there is no column ", Quoted(fields[i].text)));
      }
      if (positions_[found->column]) {
        return Fail(fields[i].column, absl::StrCat("a second column of the meaning of ", Quoted(fields[i].text)));
      }
      positions_[found->column] = i;
      if (found->name == "end") inclusive_ = 1;
    }
    field_count_ = fields.size();
    constexpr std::pair<Column, absl::string_view> kNeeded[] = {
        {kId, "id"}, {kLower, "lower"}, {kUpper, "upper"}, {kSize, "size"}};
    for (const auto& [column, name] : kNeeded) {
      if (!positions_[column]) return Fail(1, absl::StrCat("the column ", name, " is missing"));
    }
    return true;
  }

  bool ParseBlock() {
    const std::vector<Field> fields = SplitFields(line_);
    if (fields.size() != field_count_) {
      const size_t column = fields.size() > field_count_ ? fields[field_count_].column : line_.size() + 1;
      return Fail(column, absl::StrCat("expected ", field_count_, " fields, found ", fields.size()));
    }
    const auto field = [&](Column column) { return fields[*positions_[column]]; };
    Block block;
    if (!AddId(field(kId))) return false;
    if (!ParseResidency(field(kLower), field(kUpper), &block)) return false;
    if (!ParseSize(field(kSize), &block)) return false;
    if (positions_[kAlignment] && !ParseAlignment(field(kAlignment), &block)) return false;
    if (positions_[kGaps] && !ParseGaps(field(kGaps), &block)) return false;
    if (positions_[kOffset] && !ParseOffset(field(kOffset))) return false;
    result_.instance.blocks.push_back(std::move(block));
    return true;
  }

  bool AddId(const Field& field) {
    if (field.text.empty()) return Fail(field.column, "the id is empty");
    const auto [found, is_new] = id_lines_.try_emplace(field.text, line_number_);
    if (!is_new) {
      return Fail(field.column,
                  absl::StrCat("the id ", Quoted(field.text), " was given in line ", found->second, " already"));
    }
    result_.ids.emplace_back(field.text);
    return true;
  }

  // An integer in [least, most].
  bool ParseNumber(const Field& field, absl::string_view what, int64_t least, int64_t most, int64_t* number) {
    absl::string_view digits = field.text;
    const bool negative = !digits.empty() && digits.front() == '-';
    if (negative) digits.remove_prefix(1);
    const bool numeric =
        !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!numeric) return Fail(field.column, absl::StrCat(what, " is not an integer: ", Quoted(field.text)));
    int64_t value = 0;
    for (char digit : digits) {
      // Digits of a negative number stop counting where it is too small anyway.
      if (value > (most - (digit - '0')) / 10) {
        if (negative) break;
        return Fail(field.column, absl::StrCat(what, " is larger than ", most, ": ", Quoted(field.text)));
      }
      value = value * 10 + (digit - '0');
    }
    *number = negative ? -value : value;
    if (*number < least) {
      return Fail(field.column, absl::StrCat(what, " is less than ", least, ": ", Quoted(field.text)));
    }
    return true;
  }

  bool ParseResidency(const Field& lower, const Field& upper, Block* block) {
    Residency residency{0, 0};
    if (!ParseNumber(lower, "the begin", 0, kLargestClock, &residency.begin)) return false;
    if (!ParseNumber(upper, "the end", 0, kLargestClock - inclusive_, &residency.end)) return false;
    residency.end += inclusive_;
    if (residency.begin >= residency.end) return Fail(upper.column, "the block ends before it begins");
    block->residency = {residency};
    return true;
  }

  bool ParseSize(const Field& field, Block* block) {
    if (!ParseNumber(field, "the size", 1, kLargestSize, &block->size)) return false;
    if (block->size > kLargestSize - total_size_) {
      return Fail(field.column, "the sizes add up to more than 2^62 bytes");
    }
    total_size_ += block->size;
    return true;
  }

  bool ParseAlignment(const Field& field, Block* block) {
    if (field.text.empty()) return true;
    return ParseNumber(field, "the alignment", 1, kLargestSize, &block->alignment);
  }

  bool ParseOffset(const Field& field) {
    Offset offset = kNotPinned;
    if (!field.text.empty() && !ParseNumber(field, "the offset", kNotPinned, kLargestSize, &offset)) return false;
    result_.offsets.push_back(offset);
    return true;
  }

  bool ParseGaps(const Field& field, Block* block) {
    std::vector<Residency> gaps;
    size_t at = 0;
    while ((at = field.text.find_first_not_of(' ', at)) != absl::string_view::npos) {
      const size_t end = std::min(field.text.find(' ', at), field.text.size());
      Residency gap{0, 0};
      if (!ParseGap({field.text.substr(at, end - at), field.column + at}, block->residency[0], &gap)) return false;
      gaps.push_back(gap);
      at = end;
    }
    if (gaps.empty()) return true;
    std::sort(gaps.begin(), gaps.end(), [](const Residency& a, const Residency& b) { return a.begin < b.begin; });
    const Residency whole = block->residency[0];
    block->residency.clear();
    Clock begin = whole.begin;
    for (const Residency& gap : gaps) {
      if (gap.begin < begin) return Fail(field.column, "two gaps overlap");
      if (gap.begin > begin) block->residency.push_back({begin, gap.begin});
      begin = gap.end;
    }
    if (begin < whole.end) block->residency.push_back({begin, whole.end});
    if (block->residency.empty()) return Fail(field.column, "the gaps leave nothing of the block");
    return true;
  }

  bool ParseGap(const Field& field, const Residency& whole, Residency* gap) {
    if (field.text.find('@') != absl::string_view::npos) {
      return Fail(field.column, absl::StrCat("a gap of only some of the bytes is not supported: ", Quoted(field.text)));
    }
    const size_t dash = field.text.find('-');
    if (dash == absl::string_view::npos) {
      return Fail(field.column, absl::StrCat("expected a gap like 3-5, found ", Quoted(field.text)));
    }
    const Field begin{field.text.substr(0, dash), field.column};
    const Field end{field.text.substr(dash + 1), field.column + dash + 1};
    if (!ParseNumber(begin, "the gap's begin", 0, kLargestClock, &gap->begin)) return false;
    if (!ParseNumber(end, "the gap's end", 0, kLargestClock - inclusive_, &gap->end)) return false;
    gap->end += inclusive_;
    if (gap->begin >= gap->end) return Fail(field.column, "the gap ends before it begins");
    if (gap->begin < whole.begin || gap->end > whole.end) {
      return Fail(field.column, "the gap is not within the block's begin and end");
    }
    return true;
  }

  absl::string_view rest_;
  const absl::string_view name_;
  absl::string_view line_;
  size_t line_number_ = 0;
  std::array<std::optional<size_t>, kColumns> positions_{};  // of each column among the fields
  size_t field_count_ = 0;
  Clock inclusive_ = 0;  // added to ends: 1 where they are inclusive
  int64_t total_size_ = 0;
  absl::flat_hash_map<absl::string_view, size_t> id_lines_;
  NamedInstance result_;
  absl::Status error_;
};

}  // namespace

absl::StatusOr<NamedInstance> ParseCsv(absl::string_view text, absl::string_view name) {
  return Parser(text, name).Parse();
}

absl::StatusOr<NamedInstance> ReadCsvFile(const std::string& path) {
  const auto unreadable = [&] {
    return absl::InvalidArgumentError(absl::StrCat(path, ":1:1: cannot be read: ", std::strerror(errno)));
  };
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr) return unreadable();
  std::string text;
  char buffer[1 << 16];
  while (const size_t count = std::fread(buffer, 1, sizeof(buffer), file.get())) text.append(buffer, count);
  if (std::ferror(file.get()) != 0) return unreadable();
  return ParseCsv(text, path);
}

}  // namespace hotpack
