#include "bench/generated_instances.h"

#include <cmath>
#include <random>
#include <vector>

namespace hotpack::bench {

Instance TrainingInstance(int64_t n) {
  std::mt19937_64 random(1);
  const auto size = [&random](uint64_t most) { return static_cast<Bytes>(512 * (1 + random() % most)); };
  const int64_t layers = n / 3;
  const Clock end = 4 * layers + 2;
  Instance instance;
  for (int64_t i = 0; i < layers; ++i) {
    instance.blocks.push_back({.size = size(2048), .residency = {{2 * i, end - 2 * i}}});
    instance.blocks.push_back({.size = size(8192), .residency = {{2 * i, 2 * i + 1}}});
    instance.blocks.push_back({.size = size(2048), .residency = {{end - 2 * i - 3, end - 2 * i}}});
  }
  for (int64_t i = 3 * layers; i < n; ++i) {
    instance.blocks.push_back({.size = size(8192), .residency = {{end - 1, end}}});
  }
  return instance;
}

Instance RandomInstance(int64_t n) {
  std::mt19937_64 random(1);
  // Raw numbers only: the distributions of standard libraries differ.
  const auto log_uniform = [&random](double most) {
    const double share = static_cast<double>(random() >> 11) * 0x1p-53;
    return static_cast<int64_t>(std::exp2(share * std::log2(most)));
  };
  Instance instance;
  for (int64_t i = 0; i < n; ++i) {
    const auto begin = static_cast<Clock>(random() % static_cast<uint64_t>(n));
    const Clock life = log_uniform(1 + static_cast<double>(n) / 10);
    instance.blocks.push_back({.size = 512 * log_uniform(4096), .residency = {{begin, begin + life}}});
  }
  return instance;
}

Instance CutInstance(int64_t n) {
  std::mt19937_64 random(1);
  const auto draw = [&random](int64_t below) { return static_cast<int64_t>(random() % static_cast<uint64_t>(below)); };
  struct Piece {
    Clock begin, end;
    int64_t units;  // of 512 bytes
  };
  std::vector<Piece> pieces = {{0, 4 * n, 4 * n}};
  while (static_cast<int64_t>(pieces.size()) < n) {
    Piece& piece = pieces[static_cast<size_t>(draw(static_cast<int64_t>(pieces.size())))];
    const int64_t life = piece.end - piece.begin;
    Piece rest = piece;
    if (life > 1 && (piece.units == 1 || draw(2) == 0)) {
      piece.end = rest.begin = piece.begin + 1 + draw(life - 1);
    } else if (piece.units > 1) {
      piece.units = 1 + draw(piece.units - 1);
      rest.units -= piece.units;
    } else {
      continue;
    }
    pieces.push_back(rest);
  }
  Instance instance;
  for (const Piece& piece : pieces)
    instance.blocks.push_back({.size = 512 * piece.units, .residency = {{piece.begin, piece.end}}});
  return instance;
}

}  // namespace hotpack::bench
