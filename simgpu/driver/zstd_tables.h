// Entropy decoding of zstd frames (RFC 8878, section 4): the reversed bit stream, FSE tables and Huffman tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace simgpu::zstd {

// Bits of a stream that is read from its end: the highest set bit of the last byte is its beginning.
class BackwardBits {
 public:
  // Returns false without an end mark.
  bool Open(const uint8_t* data, size_t bytes) {
    if (bytes == 0 || data[bytes - 1] == 0) return false;
    data_ = data;
    position_ = static_cast<int64_t>(bytes) * 8 - 1;
    while ((data[position_ / 8] >> (position_ % 8) & 1) == 0) --position_;
    return true;
  }
  // Returns the next `count` (≤ 57) bits; bits before the beginning are zero.
  uint64_t Read(int count) {
    position_ -= count;
    return Peek(position_, count);
  }
  uint64_t Look(int count) const { return Peek(position_ - count, count); }
  void Skip(int count) { position_ -= count; }
  int64_t left() const { return position_; }  // negative: read past the beginning

 private:
  uint64_t Peek(int64_t from, int count) const {
    uint64_t value = 0;
    for (int64_t bit = from < 0 ? 0 : from; bit < from + count;) {
      const int take = static_cast<int>(8 - bit % 8 < from + count - bit ? 8 - bit % 8 : from + count - bit);
      value |= static_cast<uint64_t>(data_[bit / 8] >> (bit % 8) & ((1 << take) - 1)) << (bit - from);
      bit += take;
    }
    return value;
  }
  const uint8_t* data_ = nullptr;
  int64_t position_ = 0;
};

// Finite state entropy (RFC 8878, 4.1).
struct FseTable {
  struct Cell {
    uint8_t symbol;
    uint8_t bits;
    uint16_t base;
  };
  int accuracy = 0;  // log2 of the number of cells
  std::vector<Cell> cells;

  // Builds it from the probabilities of the symbols (-1: less than one). Returns false if they do not add up.
  bool Build(const std::vector<int>& probabilities, int table_accuracy);
  void BuildSingle(uint8_t symbol);
  // Reads a table description. Returns the bytes read, 0 if malformed.
  size_t Read(const uint8_t* data, size_t bytes, int most_accuracy, int most_symbols);
};

// Huffman codes of literals (RFC 8878, 4.2).
struct HuffmanTable {
  struct Cell {
    uint8_t symbol;
    uint8_t bits;
  };
  int most_bits = 0;
  std::vector<Cell> cells;

  // Reads a tree description. Returns the bytes read, 0 if malformed.
  size_t Read(const uint8_t* data, size_t bytes);
  // Decodes exactly `count` symbols. Returns false if malformed.
  bool Decode(const uint8_t* data, size_t bytes, size_t count, std::vector<uint8_t>* out) const;

 private:
  bool Build(std::vector<uint8_t> weights);
};

}  // namespace simgpu::zstd
