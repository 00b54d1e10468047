#include "simgpu/driver/strided.h"

#include <algorithm>
#include <cstring>

namespace simgpu {
namespace {

constexpr uint32_t kMaxDims = 25, kMaxTensors = 8;
constexpr uint32_t kDivision = 12, kStrides = 4 + kMaxDims * kDivision;

struct Division {
  uint32_t divisor, m1, shift;
};
static_assert(sizeof(Division) == kDivision);

// ATen/cuda/detail/IntegerDivider.cuh: the smallest shift with 2^shift ≥ divisor, and
// m1 = 2^32 · (2^shift - divisor) / divisor + 1.
bool Valid(Division d) {
  if (d.divisor == 0 || d.shift > 31) return false;
  const uint64_t power = uint64_t{1} << d.shift;
  if (power < d.divisor || (d.shift > 0 && power / 2 >= d.divisor)) return false;
  return d.m1 == static_cast<uint32_t>(((power - d.divisor) << 32) / d.divisor + 1);
}

template <typename T>
T Get(const void* parameter, uint32_t at) {
  T value;
  memcpy(&value, static_cast<const char*>(parameter) + at, sizeof(T));
  return value;
}

}  // namespace

uint32_t BytesOfOffsets(const void* parameter, uint32_t bytes, const std::function<bool(uint64_t)>& on_device) {
  if (bytes < kStrides + 4 * kMaxDims + 8) return 0;
  const auto dims = Get<uint32_t>(parameter, 0);
  if (dims == 0 || dims > kMaxDims) return 0;
  bool divides = false;  // one dimension of size 1 looks like any small numbers
  for (uint32_t i = 0; i < dims; ++i) {
    const auto division = Get<Division>(parameter, 4 + i * kDivision);
    if (!Valid(division)) return 0;
    divides = divides || division.divisor > 1;
  }
  if (!divides) return 0;
  const uint32_t fit = (bytes - kStrides) / (4 * kMaxDims + 8);
  for (uint32_t tensors = std::min(kMaxTensors, fit); tensors > 0; --tensors) {
    const uint32_t addresses = (kStrides + 4 * kMaxDims * tensors + 7) / 8 * 8;
    bool all = addresses + 8 * tensors <= bytes;
    for (uint32_t i = 0; i < tensors && all; ++i) all = on_device(Get<uint64_t>(parameter, addresses + 8 * i));
    if (all) return addresses;
  }
  return 0;
}

}  // namespace simgpu
