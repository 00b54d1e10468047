// zstd frames, as nvcc packs device code (RFC 8878). No dictionaries; checksums are not verified.
#include <algorithm>
#include <cstring>

#include "simgpu/driver/image.h"
#include "simgpu/driver/zstd_tables.h"

namespace simgpu {
namespace zstd {
namespace {

constexpr uint32_t kMagic = 0xFD2FB528;
constexpr size_t kMaxBlock = size_t{128} << 10;

uint64_t LittleEndian(const uint8_t* data, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(data[i]) << (8 * i);
  return value;
}

// A code of a literal or match length: a base and this many more bits (3.1.1.3.2.1.1).
struct LengthCode {
  uint32_t base;
  uint8_t bits;
};
constexpr LengthCode kLiteralLengths[] = {
    {0, 0},   {1, 0},   {2, 0},     {3, 0},     {4, 0},     {5, 0},     {6, 0},      {7, 0},      {8, 0},
    {9, 0},   {10, 0},  {11, 0},    {12, 0},    {13, 0},    {14, 0},    {15, 0},     {16, 1},     {18, 1},
    {20, 1},  {22, 1},  {24, 2},    {28, 2},    {32, 3},    {40, 3},    {48, 4},     {64, 6},     {128, 7},
    {256, 8}, {512, 9}, {1024, 10}, {2048, 11}, {4096, 12}, {8192, 13}, {16384, 14}, {32768, 15}, {65536, 16}};
constexpr LengthCode kMatchLengths[] = {
    {3, 0},   {4, 0},     {5, 0},     {6, 0},     {7, 0},     {8, 0},      {9, 0},      {10, 0},    {11, 0},
    {12, 0},  {13, 0},    {14, 0},    {15, 0},    {16, 0},    {17, 0},     {18, 0},     {19, 0},    {20, 0},
    {21, 0},  {22, 0},    {23, 0},    {24, 0},    {25, 0},    {26, 0},     {27, 0},     {28, 0},    {29, 0},
    {30, 0},  {31, 0},    {32, 0},    {33, 0},    {34, 0},    {35, 1},     {37, 1},     {39, 1},    {41, 1},
    {43, 2},  {47, 2},    {51, 3},    {59, 3},    {67, 4},    {83, 4},     {99, 5},     {131, 7},   {259, 8},
    {515, 9}, {1027, 10}, {2051, 11}, {4099, 12}, {8195, 13}, {16387, 14}, {32771, 15}, {65539, 16}};

// One of the three code tables of the sequences: its predefined probabilities (3.1.1.3.2.2) and limits.
struct Kind {
  std::vector<int> predefined;
  int predefined_accuracy;
  int most_accuracy;
  int most_symbols;
};
const Kind& LiteralLengthKind() {
  static const Kind kind{
      {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1},
      6,
      9,
      36};
  return kind;
}
const Kind& MatchLengthKind() {
  static const Kind kind{{1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                          1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1},
                         6,
                         9,
                         53};
  return kind;
}
const Kind& OffsetKind() {
  static const Kind kind{
      {1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1}, 5, 8, 32};
  return kind;
}

class Decoder {
 public:
  Decoder(size_t expected, std::vector<char>* out) : expected_(expected), out_(out) {}

  bool Frame(const uint8_t* data, size_t bytes) {
    size_t at = 0;
    if (!Header(data, bytes, &at)) return false;
    for (bool last = false; !last;) {
      if (at + 3 > bytes) return false;
      const uint64_t header = LittleEndian(data + at, 3);
      at += 3;
      last = (header & 1) != 0;
      const int type = header >> 1 & 3;
      const size_t size = header >> 3;
      const size_t taken = type == 1 ? 1 : size;
      if (at + taken > bytes || !Block(type, data + at, size)) return false;
      at += taken;
    }
    return out_->size() == expected_;
  }

 private:
  static bool Header(const uint8_t* data, size_t bytes, size_t* at) {
    if (bytes < 6 || LittleEndian(data, 4) != kMagic) return false;
    const uint8_t descriptor = data[4];
    const bool single = (descriptor & 0x20) != 0;
    constexpr size_t kDictionary[] = {0, 1, 2, 4}, kContent[] = {0, 2, 4, 8};
    const size_t content = (descriptor >> 6) == 0 && single ? 1 : kContent[descriptor >> 6];
    *at = 5 + (single ? 0 : 1) + kDictionary[descriptor & 3] + content;
    return *at <= bytes;
  }

  bool Block(int type, const uint8_t* data, size_t size) {
    switch (type) {
      case 0:
        return Append(data, size);
      case 1:
        if (out_->size() + size > expected_) return false;
        out_->insert(out_->end(), size, static_cast<char>(data[0]));
        return true;
      case 2:
        return Compressed(data, size);
      default:
        return false;
    }
  }

  bool Append(const uint8_t* data, size_t size) {
    if (out_->size() + size > expected_) return false;
    out_->insert(out_->end(), data, data + size);
    return true;
  }

  bool Compressed(const uint8_t* data, size_t bytes) {
    const size_t taken = Literals(data, bytes);
    return taken != 0 && Sequences(data + taken, bytes - taken);
  }

  // Fills literals_; returns the bytes the section took, 0 if malformed (3.1.1.3.1).
  size_t Literals(const uint8_t* data, size_t bytes) {
    if (bytes == 0) return 0;
    literals_.clear();
    const int type = data[0] & 3, format = data[0] >> 2 & 3;
    if (type < 2) {
      const size_t header = (format & 1) == 0 ? 1 : format == 1 ? 2 : 3;
      if (header > bytes) return 0;
      const size_t size = LittleEndian(data, header) >> ((format & 1) == 0 ? 3 : 4);
      if (size > kMaxBlock || header + (type == 0 ? size : 1) > bytes) return 0;
      if (type == 0) {
        literals_.assign(data + header, data + header + size);
        return header + size;
      }
      literals_.assign(size, data[header]);
      return header + 1;
    }
    const size_t header = format < 2 ? 3 : format + 2;
    const int width = format < 2 ? 10 : format == 2 ? 14 : 18;
    if (header > bytes) return 0;
    const uint64_t sizes = LittleEndian(data, header) >> 4, mask = (uint64_t{1} << width) - 1;
    const size_t size = sizes & mask, packed = sizes >> width & mask;
    if (header + packed > bytes || size > kMaxBlock) return 0;
    return HuffmanLiterals(data + header, packed, size, type == 2, format == 0) ? header + packed : 0;
  }

  bool HuffmanLiterals(const uint8_t* data, size_t bytes, size_t size, bool tree, bool one_stream) {
    if (tree) {
      const size_t taken = huffman_.Read(data, bytes);
      if (taken == 0) return false;
      data += taken;
      bytes -= taken;
    }
    if (one_stream) return huffman_.Decode(data, bytes, size, &literals_);
    if (bytes < 6) return false;
    const size_t each = (size + 3) / 4;
    size_t at = 6;
    for (int i = 0; i < 4; ++i) {
      const size_t length = i < 3 ? LittleEndian(data + 2 * i, 2) : bytes - at;
      if (at + length > bytes || (i == 3 && 3 * each > size)) return false;
      if (!huffman_.Decode(data + at, length, i < 3 ? each : size - 3 * each, &literals_)) return false;
      at += length;
    }
    return true;
  }

  // Reads the table of one kind of code; returns the bytes it took, or SIZE_MAX.
  static size_t Table(int mode, const Kind& kind, const uint8_t* data, size_t bytes, FseTable* table) {
    switch (mode) {
      case 0:
        return table->Build(kind.predefined, kind.predefined_accuracy) ? 0 : SIZE_MAX;
      case 1:
        if (bytes == 0 || data[0] >= kind.most_symbols) return SIZE_MAX;
        table->BuildSingle(data[0]);
        return 1;
      case 2: {
        const size_t taken = table->Read(data, bytes, kind.most_accuracy, kind.most_symbols);
        return taken == 0 ? SIZE_MAX : taken;
      }
      default:
        return table->cells.empty() ? SIZE_MAX : 0;
    }
  }

  bool Sequences(const uint8_t* data, size_t bytes) {
    if (bytes == 0) return false;
    size_t count = data[0], at = 1;
    if (count >= 128) {
      const size_t more = count == 255 ? 2 : 1;
      if (bytes < 1 + more) return false;
      count = count == 255 ? LittleEndian(data + 1, 2) + 0x7F00 : (count - 128) * 256 + data[1];
      at += more;
    }
    if (count == 0) return Append(literals_.data(), literals_.size());
    if (at >= bytes) return false;
    const uint8_t modes = data[at++];
    struct {
      int shift;
      const Kind& kind;
      FseTable* table;
    } const parts[] = {{6, LiteralLengthKind(), &literal_lengths_},
                       {4, OffsetKind(), &offsets_},
                       {2, MatchLengthKind(), &match_lengths_}};
    for (const auto& part : parts) {
      const size_t taken = Table(modes >> part.shift & 3, part.kind, data + at, bytes - at, part.table);
      if (taken == SIZE_MAX) return false;
      at += taken;
    }
    BackwardBits bits;
    return bits.Open(data + at, bytes - at) && Execute(&bits, count);
  }

  bool Execute(BackwardBits* bits, size_t count) {
    size_t literal_state = bits->Read(literal_lengths_.accuracy);
    size_t offset_state = bits->Read(offsets_.accuracy);
    size_t match_state = bits->Read(match_lengths_.accuracy);
    size_t used = 0;
    for (size_t i = 0; i < count; ++i) {
      const FseTable::Cell& l = literal_lengths_.cells[literal_state];
      const FseTable::Cell& o = offsets_.cells[offset_state];
      const FseTable::Cell& m = match_lengths_.cells[match_state];
      if (o.symbol > 31) return false;
      const uint64_t offset_value = (uint64_t{1} << o.symbol) + bits->Read(o.symbol);
      const size_t match = kMatchLengths[m.symbol].base + bits->Read(kMatchLengths[m.symbol].bits);
      const size_t literals = kLiteralLengths[l.symbol].base + bits->Read(kLiteralLengths[l.symbol].bits);
      if (i + 1 < count) {
        literal_state = l.base + bits->Read(l.bits);
        match_state = m.base + bits->Read(m.bits);
        offset_state = o.base + bits->Read(o.bits);
      }
      if (bits->left() < 0 || used + literals > literals_.size() || !Append(&literals_[0] + used, literals))
        return false;
      used += literals;
      if (!CopyMatch(Distance(offset_value, literals), match)) return false;
    }
    return bits->left() == 0 && Append(literals_.data() + used, literals_.size() - used);
  }

  // Values 1 to 3 mean recent distances, shifted by one when there are no literals (3.1.1.5).
  uint64_t Distance(uint64_t value, size_t literals) {
    if (value > 3) {
      recent_[2] = recent_[1];
      recent_[1] = recent_[0];
      return recent_[0] = value - 3;
    }
    const size_t index = value - 1 + (literals == 0 ? 1 : 0);
    if (index == 0) return recent_[0];
    const uint64_t distance = index == 3 ? recent_[0] - 1 : recent_[index];
    if (index != 1) recent_[2] = recent_[1];
    recent_[1] = recent_[0];
    return recent_[0] = distance;
  }

  bool CopyMatch(uint64_t distance, size_t length) {
    if (distance == 0 || distance > out_->size() || out_->size() + length > expected_) return false;
    for (size_t i = 0; i < length; ++i) out_->push_back((*out_)[out_->size() - distance]);
    return true;
  }

  size_t expected_;
  std::vector<char>* out_;
  std::vector<uint8_t> literals_;
  HuffmanTable huffman_;
  FseTable literal_lengths_, offsets_, match_lengths_;
  uint64_t recent_[3] = {1, 4, 8};
};

}  // namespace
}  // namespace zstd

bool DecompressZstd(const uint8_t* data, size_t bytes, size_t expected, std::vector<char>* out) {
  out->clear();
  out->reserve(expected);
  return zstd::Decoder(expected, out).Frame(data, bytes);
}

}  // namespace simgpu
