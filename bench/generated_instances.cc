#include "bench/generated_instances.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace hotpack::bench {
namespace {

// From 1 to below `most`. Of raw numbers only: the distributions of standard libraries differ.
int64_t LogUniform(std::mt19937_64& random, double most) {
  const double share = static_cast<double>(random() >> 11) * 0x1p-53;
  return static_cast<int64_t>(std::exp2(share * std::log2(most)));
}

struct Piece {
  Clock begin, end;
  int64_t units;  // of 512 bytes
  int64_t Area() const { return (end - begin) * units; }
};

// A rectangle cut into n blocks. Of `drawn` pieces the largest is cut next.
Instance Cut(int64_t n, int drawn, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&random](int64_t below) { return static_cast<int64_t>(random() % static_cast<uint64_t>(below)); };
  std::vector<Piece> pieces = {{0, 4 * n, 4 * n}};
  const auto pick = [&] { return static_cast<size_t>(draw(static_cast<int64_t>(pieces.size()))); };
  while (static_cast<int64_t>(pieces.size()) < n) {
    size_t next = pick();
    for (int i = 1; i < drawn; ++i) {
      if (const size_t other = pick(); pieces[other].Area() > pieces[next].Area()) next = other;
    }
    Piece& piece = pieces[next];
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

}  // namespace

Instance TrainingInstance(int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
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

Instance RandomInstance(int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  Instance instance;
  for (int64_t i = 0; i < n; ++i) {
    const auto begin = static_cast<Clock>(random() % static_cast<uint64_t>(n));
    const Clock life = LogUniform(random, 1 + static_cast<double>(n) / 10);
    instance.blocks.push_back({.size = 512 * LogUniform(random, 4096), .residency = {{begin, begin + life}}});
  }
  return instance;
}

Instance LastingInstance(int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&random](int64_t below) { return static_cast<int64_t>(random() % static_cast<uint64_t>(below)); };
  const Clock span = 20 * n;
  const int64_t huge = std::max<int64_t>(4, n / 2000);
  Instance instance;
  for (int64_t i = 0; i < n; ++i) {
    const bool is_huge = i < huge;
    const Clock life = is_huge ? 1 + draw(span / 8) : span / 10 + draw(span - span / 10);
    const Clock begin = draw(span - life);
    const Bytes size = is_huge ? (int64_t{32} << 20) * LogUniform(random, 8) : 512 * LogUniform(random, 512);
    instance.blocks.push_back({.size = size, .residency = {{begin, begin + life}}});
  }
  return instance;
}

Instance CutInstance(int64_t n, uint64_t seed) { return Cut(n, 1, seed); }

Instance EvenlyCutInstance(int64_t n, uint64_t seed) { return Cut(n, 3, seed); }

}  // namespace hotpack::bench
