#include "tools/formats/pickle_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/formats/pickle_opcodes.h"

namespace hotpack {
namespace {

using namespace pickle;

constexpr size_t kLongestWord = 32, kLongestText = 4096;
constexpr char kCut[] = "the file ends here: it is cut";

// The stack machine. Each operation returns false after Fail().
class Reader {
 public:
  Reader(ByteSource source, std::string_view name, const PickleOptions& options)
      : stream_(std::move(source)), name_(name), options_(options) {}
  absl::StatusOr<Pickle> Read();

 private:
  bool Fail(const std::string& reason);
  absl::Status Error() const;

  template <typename T>
  bool Number(T* value);  // little-endian; false at the end of the file
  bool Length(Opcode opcode, uint64_t* length);
  bool Operate(uint8_t byte);
  bool Value(Opcode opcode);
  bool Collect(Opcode opcode);
  bool Top(Opcode opcode);
  bool Memo(Opcode opcode);
  bool Mark();
  bool Stop();
  bool Push(PickleValue value);
  bool Text(Opcode opcode, bool is_text);
  bool KeepText(std::string_view text, bool is_cut);
  bool Long(uint64_t bytes);
  bool TakeMark(size_t* mark);
  bool NewList(const PickleValue* items, size_t count);
  bool NewDict(const PickleValue* items, size_t count);
  bool AddToList(const PickleValue& list, const PickleValue* items, size_t count);
  bool AddToDict(const PickleValue& dict, const PickleValue* items, size_t count);
  bool Tuple(size_t items);
  bool Put(uint64_t number);
  bool Get(uint64_t number);
  bool Hold(uint64_t bytes);
  bool Above(size_t items);  // whether there are that many since the last mark
  bool Worth(const PickleValue& value) const;

  ByteStream stream_;
  const std::string name_;
  const PickleOptions& options_;
  uint64_t at_ = 0;  // start of the current operation
  std::string fault_;
  uint64_t held_ = 0;
  bool done_ = false;

  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;
  std::deque<PickleValue> memo_;
  absl::flat_hash_map<std::string_view, int64_t> texts_;  // into pickle_.texts, which do not move
  Pickle pickle_;
};

bool Reader::Fail(const std::string& reason) {
  if (fault_.empty()) fault_ = absl::StrCat(name_, ": byte ", at_, ": ", reason);
  return false;
}

absl::Status Reader::Error() const {
  return stream_.status().ok() ? absl::InvalidArgumentError(fault_) : stream_.status();
}

template <typename T>
bool Reader::Number(T* value) {
  return stream_.Read(value, sizeof(T)) || Fail(kCut);
}

bool Reader::Hold(uint64_t bytes) {
  held_ += bytes;
  return held_ <= options_.memory_limit ||
         Fail(absl::StrCat("there is more in it than ", options_.memory_limit >> 20, " MiB of memory hold"));
}

bool Reader::Push(PickleValue value) {
  if (stack_.size() == stack_.capacity() && !Hold(sizeof(PickleValue) * (stack_.capacity() + 1))) return false;
  stack_.push_back(value);
  return true;
}

bool Reader::Above(size_t items) {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  return stack_.size() - floor >= items || Fail("malformed: it takes more than there is");
}

bool Reader::TakeMark(size_t* mark) {
  if (marks_.empty()) return Fail("malformed: there is no mark");
  *mark = marks_.back();
  marks_.pop_back();
  return true;
}

bool Reader::Length(Opcode opcode, uint64_t* length) {
  *length = 0;  // little-endian, so a shorter number fills its lower bytes
  const size_t bytes = LengthBytes(opcode);
  return stream_.Read(length, bytes) || Fail(kCut);
}

// A text or a byte string; only texts can be words.
bool Reader::Text(Opcode opcode, bool is_text) {
  uint64_t length;
  if (!Length(opcode, &length)) return false;
  const uint64_t most = std::clamp<uint64_t>(options_.text_bytes, kLongestWord, kLongestText),
                 kept = std::min(length, most);
  if ((length > kLongestWord && options_.text_bytes == 0) || !is_text)
    return stream_.Skip(length) ? Push({}) : Fail(kCut);
  char buffer[kLongestText];
  if (!stream_.Read(buffer, kept) || !stream_.Skip(length - kept)) return Fail(kCut);
  const std::string_view text(buffer, static_cast<size_t>(kept));
  for (size_t i = 0; length <= kLongestWord && i < options_.words.size(); ++i) {
    if (options_.words[i] == text) return Push({static_cast<int64_t>(i), PickleKind::kWord});
  }
  return options_.text_bytes == 0 ? Push({}) : KeepText(text, length > kept);
}

bool Reader::KeepText(std::string_view text, bool is_cut) {
  // Do not split a UTF-8 character.
  while (is_cut && !text.empty() && (text.back() & 0xC0) == 0x80) text.remove_suffix(1);
  if (is_cut && !text.empty() && (text.back() & 0x80) != 0) text.remove_suffix(1);
  const auto known = texts_.find(text);
  if (known != texts_.end()) return Push({known->second, PickleKind::kText});
  if (!Hold(text.size() + sizeof(std::string) + 2 * sizeof(*known))) return false;
  const auto ordinal = static_cast<int64_t>(pickle_.texts.size());
  texts_.emplace(pickle_.texts.emplace_back(text), ordinal);
  return Push({ordinal, PickleKind::kText});
}

// An integer of `bytes` bytes, two's complement, lowest byte first.
bool Reader::Long(uint64_t bytes) {
  if (bytes > sizeof(int64_t)) return stream_.Skip(bytes) ? Push({}) : Fail(kCut);
  unsigned char buffer[sizeof(int64_t)] = {};
  if (!stream_.Read(buffer, bytes)) return Fail(kCut);
  if (bytes > 0 && buffer[bytes - 1] >= 0x80) std::memset(buffer + bytes, 0xff, sizeof(buffer) - bytes);
  return Push({std::bit_cast<int64_t>(buffer), PickleKind::kInteger});
}

bool Reader::Worth(const PickleValue& value) const {
  if (value.kind == PickleKind::kDict) return pickle_.dicts[static_cast<size_t>(value.number)].count > 0;
  return value.kind != PickleKind::kOther;
}

bool Reader::AddToList(const PickleValue& list, const PickleValue* items, size_t count) {
  if (list.kind == PickleKind::kOther) return true;  // items of such a list are not kept
  if (list.kind != PickleKind::kList) return Fail("malformed: something is appended to what is no list");
  std::vector<PickleValue>& to = pickle_.lists[static_cast<size_t>(list.number)];
  for (size_t i = 0; i < count; ++i) {
    if (!Worth(items[i])) continue;
    if (to.size() == to.capacity() && !Hold(sizeof(PickleValue) * (to.capacity() + 1))) return false;
    to.push_back(items[i]);
  }
  return true;
}

// `items`: key, value, key, value.
bool Reader::AddToDict(const PickleValue& dict, const PickleValue* items, size_t count) {
  if (dict.kind != PickleKind::kDict) return Fail("malformed: an entry is added to what is no dictionary");
  if (count % 2 != 0) return Fail("malformed: a dictionary has a key without a value");
  PickleDict& to = pickle_.dicts[static_cast<size_t>(dict.number)];
  for (size_t i = 0; i < count; i += 2) {
    if (items[i].kind != PickleKind::kWord || items[i + 1].kind == PickleKind::kOther) continue;
    PickleValue entry = items[i + 1];
    entry.key = static_cast<uint8_t>(items[i].number);
    if (const PickleValue* there = pickle_.Find(dict, entry.key); there != nullptr) {
      *const_cast<PickleValue*>(there) = entry;
      continue;
    }
    const bool is_last = to.first + to.count == pickle_.entries.size();
    if (!Hold(sizeof(PickleValue) * (is_last ? 1 : to.count + 1))) return false;
    if (!is_last) {  // others were added after it: it moves to the end
      const uint64_t first = pickle_.entries.size();
      for (uint32_t k = 0; k < to.count; ++k) pickle_.entries.push_back(pickle_.entries[to.first + k]);
      to.first = first;
    }
    pickle_.entries.push_back(entry);
    ++to.count;
  }
  return true;
}

bool Reader::NewList(const PickleValue* items, size_t count) {
  if (!Hold(sizeof(std::vector<PickleValue>))) return false;
  const PickleValue list = {static_cast<int64_t>(pickle_.lists.size()), PickleKind::kList};
  pickle_.lists.emplace_back();
  if (!AddToList(list, items, count)) return false;
  stack_.resize(stack_.size() - count);
  return Push(list);
}

bool Reader::NewDict(const PickleValue* items, size_t count) {
  if (!Hold(sizeof(PickleDict))) return false;
  const PickleValue dict = {static_cast<int64_t>(pickle_.dicts.size()), PickleKind::kDict};
  pickle_.dicts.push_back({pickle_.entries.size(), 0});
  if (!AddToDict(dict, items, count)) return false;
  stack_.resize(stack_.size() - count);
  return Push(dict);
}

bool Reader::Tuple(size_t items) {
  if (!Above(items)) return false;
  stack_.resize(stack_.size() - items);
  return Push({});
}

// Picklers number memo entries from 0 without a gap.
bool Reader::Put(uint64_t number) {
  if (!Above(1)) return false;
  if (number > memo_.size()) return Fail(absl::StrCat("malformed: note ", number, " after ", memo_.size(), " notes"));
  if (number < memo_.size()) {
    memo_[number] = stack_.back();
    return true;
  }
  if (!Hold(sizeof(PickleValue))) return false;
  memo_.push_back(stack_.back());
  return true;
}

bool Reader::Get(uint64_t number) {
  if (number >= memo_.size()) return Fail(absl::StrCat("malformed: note ", number, " of ", memo_.size(), " notes"));
  return Push(memo_[number]);
}

// Operations that push one value.
bool Reader::Value(Opcode opcode) {
  uint8_t u8;
  uint16_t u16;
  int32_t i32;
  switch (opcode) {
    case kNewTrue:
      return Push({1, PickleKind::kBool});
    case kNewFalse:
      return Push({0, PickleKind::kBool});
    case kBinInt:
      return Number(&i32) && Push({i32, PickleKind::kInteger});
    case kBinInt1:
      return Number(&u8) && Push({u8, PickleKind::kInteger});
    case kBinInt2:
      return Number(&u16) && Push({u16, PickleKind::kInteger});
    case kLong1:
      return Number(&u8) && Long(u8);
    case kLong4:
      if (!Number(&i32)) return false;
      return i32 < 0 ? Fail("malformed: an integer of a negative length") : Long(static_cast<uint64_t>(i32));
    case kBinFloat:
      return stream_.Skip(8) ? Push({}) : Fail(kCut);
    case kEmptyList:
      return NewList(nullptr, 0);
    case kEmptyDict:
      return NewDict(nullptr, 0);
    default:
      return Push({});  // None, the empty tuple
  }
}

// Operations that collect everything above the last mark.
bool Reader::Collect(Opcode opcode) {
  size_t mark = 0;
  if (!TakeMark(&mark)) return false;
  const size_t count = stack_.size() - mark;
  if (opcode == kList) return NewList(stack_.data() + mark, count);
  if (opcode == kDict) return NewDict(stack_.data() + mark, count);
  if (opcode == kAppends || opcode == kSetItems) {
    if (mark <= (marks_.empty() ? 0 : marks_.back())) return Fail("malformed: there is nothing before the mark");
    const PickleValue to = stack_[mark - 1];
    if (!(opcode == kAppends ? AddToList(to, stack_.data() + mark, count)
                             : AddToDict(to, stack_.data() + mark, count))) {
      return false;
    }
  }
  stack_.resize(mark);
  return opcode != kTuple || Push({});
}

// Operations on the top of the stack.
bool Reader::Top(Opcode opcode) {
  size_t top = stack_.size();
  switch (opcode) {
    case kAppend:
      if (!Above(2) || !AddToList(stack_[top - 2], &stack_[top - 1], 1)) return false;
      stack_.resize(top - 1);
      return true;
    case kSetItem:
      if (!Above(3) || !AddToDict(stack_[top - 3], &stack_[top - 2], 2)) return false;
      stack_.resize(top - 2);
      return true;
    case kPop:
      if (!marks_.empty() && marks_.back() == top) {
        marks_.pop_back();  // as Python does
        return true;
      }
      if (!Above(1)) return false;
      stack_.pop_back();
      return true;
    case kDup:
      return Above(1) && Push(PickleValue(stack_.back()));
    case kTuple1:
      return Tuple(1);
    case kTuple2:
      return Tuple(2);
    default:
      return Tuple(3);
  }
}

// Operations on the memo.
bool Reader::Memo(Opcode opcode) {
  uint64_t number = memo_.size();
  const size_t bytes = opcode == kMemoize ? 0 : opcode == kBinPut || opcode == kBinGet ? 1 : 4;
  if (bytes > 0) {
    number = 0;  // little-endian, so a shorter number fills its lower bytes
    if (!stream_.Read(&number, bytes)) return Fail(kCut);
  }
  return opcode == kBinGet || opcode == kLongBinGet ? Get(number) : Put(number);
}

bool Reader::Mark() {
  if (marks_.size() == marks_.capacity() && !Hold(sizeof(size_t) * (marks_.capacity() + 1))) return false;
  marks_.push_back(stack_.size());
  return true;
}

bool Reader::Stop() {
  if (stack_.size() != 1 || !marks_.empty()) return Fail("malformed: it ends with more or less than one value");
  pickle_.root = stack_.back();
  done_ = true;
  return true;
}

bool Reader::Operate(uint8_t byte) {
  switch (const auto opcode = static_cast<Opcode>(byte); opcode) {
    case kFrame:
      return stream_.Skip(8) || Fail(kCut);
    case kStop:
      return Stop();
    case kProto:
      return Fail("malformed: a second beginning");
    case kNone:
    case kNewTrue:
    case kNewFalse:
    case kBinInt:
    case kBinInt1:
    case kBinInt2:
    case kLong1:
    case kLong4:
    case kBinFloat:
    case kEmptyTuple:
    case kEmptyList:
    case kEmptyDict:
      return Value(opcode);
    case kShortBinUnicode:
    case kBinUnicode:
    case kBinUnicode8:
    case kShortBinString:
    case kBinString:
      return Text(opcode, true);
    case kShortBinBytes:
    case kBinBytes:
    case kBinBytes8:
    case kByteArray8:
      return Text(opcode, false);
    case kMark:
      return Mark();
    case kTuple:
    case kList:
    case kDict:
    case kAppends:
    case kSetItems:
    case kPopMark:
      return Collect(opcode);
    case kTuple1:
    case kTuple2:
    case kTuple3:
    case kAppend:
    case kSetItem:
    case kPop:
    case kDup:
      return Top(opcode);
    case kMemoize:
    case kBinPut:
    case kLongBinPut:
    case kBinGet:
    case kLongBinGet:
      return Memo(opcode);
  }
  if (const char* refused = RefusedOpcode(byte); refused != nullptr) {
    return Fail(absl::StrCat("it wants Python to make an object (", refused,
                             "); only numbers, texts, lists and dictionaries are read, and nothing is run"));
  }
  return Fail(absl::StrCat("malformed: there is no operation ", byte, " in a pickle of protocol 2 to 5"));
}

absl::StatusOr<Pickle> Reader::Read() {
  uint8_t opcode, protocol;
  if (!stream_.ReadByte(&opcode)) return Fail("the file is empty"), Error();
  if (opcode != kProto || !stream_.ReadByte(&protocol) || protocol < 2 || protocol > 5) {
    return Fail("this is no pickle of protocol 2 to 5"), Error();
  }
  while (!done_) {
    at_ = stream_.position();
    if (!stream_.ReadByte(&opcode)) return Fail(kCut), Error();
    if (!Operate(opcode)) return Error();
  }
  return std::move(pickle_);
}

}  // namespace

const PickleValue* Pickle::Find(const PickleValue& dict, uint8_t key) const {
  const PickleDict& in = dicts[static_cast<size_t>(dict.number)];
  for (uint32_t i = 0; i < in.count; ++i) {
    if (entries[in.first + i].key == key) return &entries[in.first + i];
  }
  return nullptr;
}

absl::StatusOr<Pickle> ReadPickle(ByteSource source, std::string_view name, const PickleOptions& options) {
  return Reader(std::move(source), name, options).Read();
}

}  // namespace hotpack
