#include "simgpu/driver/zstd_tables.h"

#include <bit>

namespace simgpu::zstd {
namespace {

int Log2(uint32_t value) { return std::bit_width(value) - 1; }

// Bits of a stream that is read from its beginning, lowest bit first.
class ForwardBits {
 public:
  ForwardBits(const uint8_t* data, size_t bytes) : data_(data), bits_(bytes * 8) {}
  uint32_t Read(int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i, ++position_) {
      if (position_ < bits_) value |= static_cast<uint32_t>(data_[position_ / 8] >> (position_ % 8) & 1) << i;
    }
    return value;
  }
  void Back(int count) { position_ -= count; }
  bool overrun() const { return position_ > bits_; }
  size_t bytes() const { return (position_ + 7) / 8; }

 private:
  const uint8_t* data_;
  size_t bits_;
  size_t position_ = 0;
};

}  // namespace

bool FseTable::Build(const std::vector<int>& probabilities, int table_accuracy) {
  accuracy = table_accuracy;
  const uint32_t size = 1u << accuracy;
  cells.assign(size, {});
  std::vector<uint32_t> next(probabilities.size());
  uint32_t high = size;
  for (size_t s = 0; s < probabilities.size(); ++s) {
    if (probabilities[s] == -1) {
      if (high == 0) return false;
      cells[--high].symbol = static_cast<uint8_t>(s);
      next[s] = 1;
    } else {
      next[s] = probabilities[s];
    }
  }
  const uint32_t step = (size >> 1) + (size >> 3) + 3;
  uint32_t position = 0;
  for (size_t s = 0; s < probabilities.size(); ++s) {
    for (int i = 0; i < probabilities[s]; ++i) {
      cells[position].symbol = static_cast<uint8_t>(s);
      do {
        position = (position + step) & (size - 1);
      } while (position >= high);
    }
  }
  if (position != 0) return false;
  for (Cell& cell : cells) {
    const uint32_t state = next[cell.symbol]++;
    cell.bits = static_cast<uint8_t>(accuracy - Log2(state));
    cell.base = static_cast<uint16_t>((state << cell.bits) - size);
  }
  return true;
}

void FseTable::BuildSingle(uint8_t symbol) {
  accuracy = 0;
  cells.assign(1, {symbol, 0, 0});
}

size_t FseTable::Read(const uint8_t* data, size_t bytes, int most_accuracy, int most_symbols) {
  ForwardBits bits(data, bytes);
  const int table_accuracy = static_cast<int>(bits.Read(4)) + 5;
  if (table_accuracy > most_accuracy) return 0;
  std::vector<int> probabilities;
  int remaining = 1 << table_accuracy;
  while (remaining > 0 && static_cast<int>(probabilities.size()) < most_symbols && !bits.overrun()) {
    // The value is 0 to remaining + 1; small values take one bit less (4.1.1).
    const int width = Log2(remaining + 1) + 1;
    uint32_t value = bits.Read(width);
    const uint32_t low_mask = (1u << (width - 1)) - 1;
    const uint32_t threshold = (1u << width) - 1 - (remaining + 1);
    if ((value & low_mask) < threshold) {
      bits.Back(1);
      value &= low_mask;
    } else if (value > low_mask) {
      value -= threshold;
    }
    const int probability = static_cast<int>(value) - 1;
    probabilities.push_back(probability);
    remaining -= probability < 0 ? 1 : probability;
    if (probability != 0) continue;
    for (uint32_t repeat = 3; repeat == 3;) {
      repeat = bits.Read(2);
      probabilities.insert(probabilities.end(), repeat, 0);
      if (bits.overrun()) return 0;
    }
  }
  if (remaining != 0 || bits.overrun() || static_cast<int>(probabilities.size()) > most_symbols) return 0;
  return Build(probabilities, table_accuracy) ? bits.bytes() : 0;
}

// The last weight is not stored: it makes the sum a power of two (4.2.1).
bool HuffmanTable::Build(std::vector<uint8_t> weights) {
  uint32_t sum = 0;
  for (uint8_t w : weights) {
    if (w > 11) return false;
    sum += w > 0 ? 1u << (w - 1) : 0;
  }
  if (sum == 0) return false;
  most_bits = Log2(sum) + 1;
  const uint32_t rest = (1u << most_bits) - sum;
  if (most_bits > 11 || !std::has_single_bit(rest) || weights.size() > 255) return false;
  weights.push_back(static_cast<uint8_t>(Log2(rest) + 1));
  cells.assign(size_t{1} << most_bits, {});
  size_t at = 0;
  for (int weight = 1; weight <= most_bits; ++weight) {
    for (size_t s = 0; s < weights.size(); ++s) {
      if (weights[s] != weight) continue;
      for (int i = 0; i < 1 << (weight - 1); ++i) {
        cells[at++] = {static_cast<uint8_t>(s), static_cast<uint8_t>(most_bits + 1 - weight)};
      }
    }
  }
  return at == cells.size();
}

size_t HuffmanTable::Read(const uint8_t* data, size_t bytes) {
  if (bytes == 0) return 0;
  std::vector<uint8_t> weights;
  const size_t header = data[0];
  if (header >= 128) {  // 4 bits per weight
    const size_t count = header - 127, taken = 1 + (count + 1) / 2;
    if (taken > bytes) return 0;
    for (size_t i = 0; i < count; ++i) {
      const uint8_t pair = data[1 + i / 2];
      weights.push_back(i % 2 == 0 ? pair >> 4 : pair & 15);
    }
    return Build(std::move(weights)) ? taken : 0;
  }
  if (1 + header > bytes) return 0;
  FseTable table;
  const size_t table_bytes = table.Read(data + 1, header, 6, 256);
  if (table_bytes == 0) return 0;
  BackwardBits bits;
  if (!bits.Open(data + 1 + table_bytes, header - table_bytes)) return 0;
  // Two states alternate until the bits are used up (4.2.1.2).
  size_t state[2] = {bits.Read(table.accuracy), bits.Read(table.accuracy)};
  for (int turn = 0; weights.size() < 255; turn ^= 1) {
    const FseTable::Cell& cell = table.cells[state[turn]];
    weights.push_back(cell.symbol);
    state[turn] = cell.base + bits.Read(cell.bits);
    if (bits.left() < 0) {
      weights.push_back(table.cells[state[turn ^ 1]].symbol);
      break;
    }
  }
  return Build(std::move(weights)) ? 1 + header : 0;
}

bool HuffmanTable::Decode(const uint8_t* data, size_t bytes, size_t count, std::vector<uint8_t>* out) const {
  BackwardBits bits;
  if (cells.empty() || !bits.Open(data, bytes)) return false;
  for (size_t i = 0; i < count; ++i) {
    const Cell& cell = cells[bits.Look(most_bits)];
    bits.Skip(cell.bits);
    out->push_back(cell.symbol);
  }
  return bits.left() == 0;
}

}  // namespace simgpu::zstd
