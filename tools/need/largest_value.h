// The largest value of a varied parameter, such as a batch, with which a program fits.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace hotpack {

// A run with a value of the parameter, and the bytes that it needed.
struct ValuePoint {
  int64_t value = 0;
  uint64_t needed = 0;
};

// Returns the largest value of at least 1 that needs at most `limit` bytes by the line through two points: those to
// both sides of the limit if there are such, else the two that are nearest to it. `points`: in increasing order of
// values, no value twice. Returns nothing if there are fewer than two, or if a larger value needs no more memory.
std::optional<int64_t> LargestByLine(const std::vector<ValuePoint>& points, uint64_t limit);

}  // namespace hotpack
