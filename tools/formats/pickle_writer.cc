#include "tools/formats/pickle_writer.h"

#include <limits>
#include <utility>

#include "tools/formats/pickle_opcodes.h"

namespace hotpack {
namespace {

using namespace pickle;

constexpr size_t kPieceBytes = size_t{1} << 16;
constexpr uint32_t kMaxItems = 1000;
constexpr size_t kMaxKnown = 256;  // the range of one byte

}  // namespace

PickleWriter::PickleWriter(TextSink sink) : sink_(std::move(sink)) {
  PutByte(kProto);
  PutByte(2);
}

void PickleWriter::Put(std::string_view bytes) {
  if (!status_.ok()) return;
  buffer_.append(bytes);
  if (buffer_.size() < kPieceBytes) return;
  status_ = sink_(buffer_);
  buffer_.clear();
}

void PickleWriter::PutNumber(uint64_t value, size_t bytes) {
  for (; bytes > 0; --bytes, value >>= 8) PutByte(static_cast<uint8_t>(value));
}

void PickleWriter::Item() {
  if (open_.empty() || !open_.back().is_list) return;
  List& list = open_.back();
  if (list.items == kMaxItems) {
    PutByte(kAppends);
    list.is_open = false;
  }
  if (!list.is_open) {
    PutByte(kMark);
    list.is_open = true;
    list.items = 0;
  }
  ++list.items;
}

void PickleWriter::BeginDict() {
  Item();
  PutByte(kEmptyDict);
  PutByte(kMark);
  open_.push_back({false, true, 0});
}

void PickleWriter::EndDict() {
  PutByte(kSetItems);
  open_.pop_back();
}

void PickleWriter::BeginList() {
  Item();
  PutByte(kEmptyList);
  open_.push_back({true, false, 0});
}

void PickleWriter::EndList() {
  if (open_.back().is_open) PutByte(kAppends);
  open_.pop_back();
}

void PickleWriter::Integer(int64_t value) {
  Item();
  if (value >= 0 && value <= std::numeric_limits<uint8_t>::max()) {
    PutByte(kBinInt1);
    PutNumber(static_cast<uint64_t>(value), 1);
  } else if (value >= 0 && value <= std::numeric_limits<uint16_t>::max()) {
    PutByte(kBinInt2);
    PutNumber(static_cast<uint64_t>(value), 2);
  } else if (value == static_cast<int32_t>(value)) {
    PutByte(kBinInt);
    PutNumber(static_cast<uint64_t>(value), 4);
  } else {
    size_t bytes = 5;  // the fewest that hold it with its sign
    while (bytes < 8 && value >> (8 * bytes - 1) != 0 && value >> (8 * bytes - 1) != -1) ++bytes;
    PutByte(kLong1);
    PutByte(static_cast<uint8_t>(bytes));
    PutNumber(static_cast<uint64_t>(value), bytes);
  }
}

void PickleWriter::Bool(bool value) {
  Item();
  PutByte(value ? kNewTrue : kNewFalse);
}

void PickleWriter::Text(std::string_view text) {
  Item();
  if (const auto found = known_.find(absl::string_view(text.data(), text.size())); found != known_.end()) {
    PutByte(kBinGet);
    PutByte(found->second);
    return;
  }
  PutByte(kBinUnicode);
  PutNumber(text.size(), 4);
  Put(text);
  if (known_.size() == kMaxKnown) return;
  PutByte(kBinPut);
  PutByte(static_cast<uint8_t>(known_.size()));
  known_.emplace(text, static_cast<uint8_t>(known_.size()));
}

void PickleWriter::ZeroPair() {
  Item();
  for (int i = 0; i < 2; ++i) {
    PutByte(kBinInt1);
    PutByte(0);
  }
  PutByte(kTuple2);
}

absl::Status PickleWriter::Finish() {
  PutByte(kStop);
  if (status_.ok() && !buffer_.empty()) status_ = sink_(buffer_);
  return status_;
}

}  // namespace hotpack
