#include "packer/csv.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
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
  const char* begin;  // position of the text, or of the empty field, in the line
};

// The fields of one line: as many as there can be columns, and the first one beyond.
struct Fields {
  std::array<Field, kColumns + 1> kept;
  size_t count = 0;  // including those beyond `kept`

  const Field& operator[](size_t i) const { return kept[i]; }
};

absl::string_view Trimmed(absl::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Returns a piece of the file for an error: printable, on one line, not long.
std::string Quoted(absl::string_view text) {
  constexpr size_t kLongest = 40;
  const bool cut = text.size() > kLongest;
  return absl::StrCat("'", absl::CEscape({text.data(), cut ? kLongest : text.size()}), cut ? "..." : "", "'");
}

void SplitFields(absl::string_view line, Fields* fields) {
  fields->count = 0;
  const char* begin = line.data();
  const char* const line_end = begin + line.size();
  for (;;) {
    const char* end = begin;
    while (end != line_end && *end != ',') ++end;
    if (fields->count < fields->kept.size()) {
      const absl::string_view text = Trimmed({begin, static_cast<size_t>(end - begin)});
      fields->kept[fields->count] = {text, text.empty() ? begin : text.data()};
    }
    ++fields->count;
    if (end == line_end) return;
    begin = end + 1;
  }
}

// Shorter texts first, those of equal length by bytes: ascending numbers come in this order.
bool ComesBefore(absl::string_view a, absl::string_view b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// Finds an id that occurred before. Ascending ids cannot be equal, so the set is built only when one does not ascend.
class IdSet {
 public:
  // Adds the newest of `ids`. Returns the index of an equal earlier one, or -1.
  int64_t AddLast(const std::vector<std::string>& ids) {
    const size_t last = ids.size() - 1;
    if (ascending_) {
      if (last == 0 || ComesBefore(ids[last - 1], ids[last])) return -1;
      ascending_ = false;
      indices_ = Indices(0, Hash{&ids}, Equal{&ids});
      indices_.reserve(2 * ids.size());
      for (size_t i = 0; i < last; ++i) indices_.insert(static_cast<uint32_t>(i));
    }
    const auto [found, is_new] = indices_.insert(static_cast<uint32_t>(last));
    return is_new ? -1 : int64_t{*found};
  }

 private:
  struct Hash {
    const std::vector<std::string>* ids;
    size_t operator()(uint32_t index) const { return absl::HashOf(absl::string_view((*ids)[index])); }
  };
  struct Equal {
    const std::vector<std::string>* ids;
    bool operator()(uint32_t a, uint32_t b) const { return (*ids)[a] == (*ids)[b]; }
  };
  using Indices = absl::flat_hash_set<uint32_t, Hash, Equal>;

  bool ascending_ = true;
  Indices indices_;
};

// One pass over the text. Every method that can fail returns false with error_ set.
class Parser {
 public:
  Parser(absl::string_view text, absl::string_view name) : rest_(text), name_(name) {}

  absl::StatusOr<NamedInstance> Parse() {
    if (!ParseHeader()) return error_;
    Reserve();
    while (NextLine()) {
      if (!ParseBlock()) return error_;
    }
    if (!error_.ok()) return error_;
    return std::move(result_);
  }

 private:
  bool Fail(const char* at, absl::string_view reason) {
    return Fail(static_cast<size_t>(at - line_.data()) + 1, reason);
  }
  bool Fail(size_t column, absl::string_view reason) {
    error_ = absl::InvalidArgumentError(absl::StrCat(name_, ":", line_number_, ":", column, ": ", reason));
    return false;
  }

  // Reserves memory for all blocks at once. Growing would copy them several times, and finally need twice the memory.
  void Reserve() {
    constexpr size_t kShortestLine = 8;  // 0,0,1,1 and its end
    const auto lines = static_cast<size_t>(std::count(rest_.begin(), rest_.end(), '\n'));
    const size_t blocks = std::min(lines, rest_.size() / kShortestLine) + 1;
    result_.instance.blocks.reserve(blocks);
    result_.ids.reserve(blocks);
    if (positions_[kOffset]) result_.offsets.reserve(blocks);
  }

  // Returns false at the end of the text. Also returns false, with error_ set, for an empty line that another line
  // follows.
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
    Fields fields;
    SplitFields(line_, &fields);
    for (size_t i = 0; i < fields.count; ++i) {
      const auto* const found = std::find_if(std::begin(kColumnNames), std::end(kColumnNames),
                                             [&](const ColumnName& known) { return known.name == fields[i].text; });
      if (found == std::end(kColumnNames)) {
        return Fail(fields[i].begin, absl::StrCat("there is no column ", Quoted(fields[i].text)));
      }
      if (positions_[found->column]) {
        return Fail(fields[i].begin, absl::StrCat("a second column of the meaning of ", Quoted(fields[i].text)));
      }
      positions_[found->column] = i;
      if (found->name == "end") inclusive_ = 1;
    }
    field_count_ = fields.count;
    constexpr std::pair<Column, absl::string_view> kNeeded[] = {
        {kId, "id"}, {kLower, "lower"}, {kUpper, "upper"}, {kSize, "size"}};
    for (const auto& [column, name] : kNeeded) {
      if (!positions_[column]) return Fail(1, absl::StrCat("the column ", name, " is missing"));
    }
    return true;
  }

  bool ParseBlock() {
    SplitFields(line_, &fields_);
    if (fields_.count != field_count_) {
      const char* const at = fields_.count > field_count_ ? fields_[field_count_].begin : line_.data() + line_.size();
      return Fail(at, absl::StrCat("expected ", field_count_, " fields, found ", fields_.count));
    }
    const auto field = [&](Column column) -> const Field& { return fields_[*positions_[column]]; };
    if (!AddId(field(kId))) return false;
    Block& block = result_.instance.blocks.emplace_back();
    if (!ParseResidency(field(kLower), field(kUpper), &block)) return false;
    if (!ParseSize(field(kSize), &block)) return false;
    if (positions_[kAlignment] && !ParseAlignment(field(kAlignment), &block)) return false;
    if (positions_[kGaps] && !ParseGaps(field(kGaps), &block)) return false;
    return !positions_[kOffset] || ParseOffset(field(kOffset));
  }

  bool AddId(const Field& field) {
    if (field.text.empty()) return Fail(field.begin, "the id is empty");
    result_.ids.emplace_back(field.text);
    const int64_t equal = ids_.AddLast(result_.ids);
    if (equal < 0) return true;
    const int64_t line = equal + 2;  // below the column names, one block per line
    return Fail(field.begin, absl::StrCat("the id ", Quoted(field.text), " was given in line ", line, " already"));
  }

  // The usual case: only digits, and too few to overflow.
  static bool ParseShortNumber(absl::string_view digits, int64_t* number) {
    if (digits.empty() || digits.size() > 18) return false;
    int64_t value = 0;
    for (char c : digits) {
      if (c < '0' || c > '9') return false;
      value = value * 10 + (c - '0');
    }
    *number = value;
    return true;
  }

  // Parses an integer in [least, most].
  bool ParseNumber(const Field& field, absl::string_view what, int64_t least, int64_t most, int64_t* number) {
    if (ParseShortNumber(field.text, number) && *number >= least && *number <= most) return true;
    absl::string_view digits = field.text;
    const bool negative = !digits.empty() && digits.front() == '-';
    if (negative) digits.remove_prefix(1);
    const bool numeric =
        !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!numeric) return Fail(field.begin, absl::StrCat(what, " is not an integer: ", Quoted(field.text)));
    int64_t value = 0;
    for (char digit : digits) {
      // For a negative number, further digits do not matter once it is too small.
      if (value > (most - (digit - '0')) / 10) {
        if (negative) break;
        return Fail(field.begin, absl::StrCat(what, " is larger than ", most, ": ", Quoted(field.text)));
      }
      value = value * 10 + (digit - '0');
    }
    *number = negative ? -value : value;
    if (*number < least) {
      return Fail(field.begin, absl::StrCat(what, " is less than ", least, ": ", Quoted(field.text)));
    }
    return true;
  }

  bool ParseResidency(const Field& lower, const Field& upper, Block* block) {
    Residency residency{0, 0};
    if (!ParseNumber(lower, "the begin", 0, kLargestClock, &residency.begin)) return false;
    if (!ParseNumber(upper, "the end", 0, kLargestClock - inclusive_, &residency.end)) return false;
    residency.end += inclusive_;
    if (residency.begin >= residency.end) return Fail(upper.begin, "the block ends before it begins");
    block->residency.push_back(residency);
    return true;
  }

  bool ParseSize(const Field& field, Block* block) {
    if (!ParseNumber(field, "the size", 1, kLargestSize, &block->size)) return false;
    if (block->size > kLargestSize - total_size_) {
      return Fail(field.begin, "the sizes add up to more than 2^62 bytes");
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
      if (!ParseGap({field.text.substr(at, end - at), field.text.data() + at}, block->residency[0], &gap)) return false;
      gaps.push_back(gap);
      at = end;
    }
    if (gaps.empty()) return true;
    std::sort(gaps.begin(), gaps.end(), [](const Residency& a, const Residency& b) { return a.begin < b.begin; });
    const Residency whole = block->residency[0];
    block->residency.clear();
    Clock begin = whole.begin;
    for (const Residency& gap : gaps) {
      if (gap.begin < begin) return Fail(field.begin, "two gaps overlap");
      if (gap.begin > begin) block->residency.push_back({begin, gap.begin});
      begin = gap.end;
    }
    if (begin < whole.end) block->residency.push_back({begin, whole.end});
    if (block->residency.empty()) return Fail(field.begin, "the gaps leave nothing of the block");
    return true;
  }

  bool ParseGap(const Field& field, const Residency& whole, Residency* gap) {
    if (field.text.find('@') != absl::string_view::npos) {
      return Fail(field.begin, absl::StrCat("a gap of only some of the bytes is not supported: ", Quoted(field.text)));
    }
    const size_t dash = field.text.find('-');
    if (dash == absl::string_view::npos) {
      return Fail(field.begin, absl::StrCat("expected a gap like 3-5, found ", Quoted(field.text)));
    }
    const Field begin{field.text.substr(0, dash), field.begin};
    const Field end{field.text.substr(dash + 1), field.begin + dash + 1};
    if (!ParseNumber(begin, "the gap's begin", 0, kLargestClock, &gap->begin)) return false;
    if (!ParseNumber(end, "the gap's end", 0, kLargestClock - inclusive_, &gap->end)) return false;
    gap->end += inclusive_;
    if (gap->begin >= gap->end) return Fail(field.begin, "the gap ends before it begins");
    if (gap->begin < whole.begin || gap->end > whole.end) {
      return Fail(field.begin, "the gap is not within the block's begin and end");
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
  Fields fields_;  // of the current line
  IdSet ids_;
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
