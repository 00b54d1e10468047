// Parameters of which the kernel reads a part, as PyTorch's kernels for tensors that are not contiguous. See
// checker_cases.h and simgpu/driver/strided.h.
#include <cstring>

#include "tests/simgpu/checker_cases.h"

namespace simgpu_test {
namespace {

// Two tensors of three dimensions: {6, 10, 14}.
struct Strided {
  uint32_t dims = 3;
  uint32_t divisions[25][3] = {{6, 0x55555556, 3}, {10, 0x9999999a, 4}, {14, 0x24924925, 4}};
  uint32_t strides[25][2] = {{4, 240}, {24, 24}, {240, 4}};
  uint64_t addresses[2] = {arena + 2 * kPage, arena + 2 * kPage + 8};
  uint64_t captured[2] = {};
};
static_assert(sizeof(Strided) == 536);

// The stack's old contents at a word that is not set.
void Leave(Strided* s, size_t at, uint64_t address) { memcpy(reinterpret_cast<char*>(s) + at, &address, 8); }

void Launch(CUstream stream, Strided s) {
  int n = 840;
  void* parameters[] = {&n, &s};
  MUST(cuLaunchKernel(Kernel("strided"), 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
}

// A block used on s1 is live, and so is the next one there.
Strided Reused() {
  UsedOnce();
  Give(arena, 8192);
  Give(arena + 2 * kPage, 8192);
  return {};
}

}  // namespace

CASE(StridedLeftovers) {
  Strided s = Reused();
  Leave(&s, 40, arena);   // the fourth division
  Leave(&s, 296, arena);  // the last one
  Leave(&s, 328, arena);  // the fourth dimension's strides
  Leave(&s, 408, arena);  // where the address would be, were there one tensor only
  Leave(&s, 496, arena);
  Launch(s2, s);
}
CASE(StridedFirst) {
  Strided s = Reused();
  s.addresses[0] = arena;
  Launch(s2, s);
}
CASE(StridedSecond) {
  Strided s = Reused();
  s.addresses[1] = arena;
  Launch(s2, s);
}
CASE(StridedCaptured) {
  Strided s = Reused();
  s.captured[1] = arena;
  Launch(s2, s);
}
// Structs that merely resemble one are read in full: wrong divisions, no dimension, addresses elsewhere.
CASE(StridedNot) {
  Strided s = Reused();
  s.divisions[2][1] += 1;
  Leave(&s, 40, arena);
  Launch(s2, s);
}
CASE(StridedNoDimension) {
  Strided s = Reused();
  s.dims = 0;
  Leave(&s, 40, arena);
  Launch(s2, s);
}
CASE(StridedSmallNumbers) {
  Strided s = Reused();
  s.dims = 1;
  const uint32_t one[3] = {1, 1, 0};
  memcpy(s.divisions[0], one, sizeof(one));
  Leave(&s, 40, arena);
  Launch(s2, s);
}
CASE(StridedNoAddresses) {
  Strided s = Reused();
  s.addresses[1] = 7;
  Leave(&s, 40, arena);
  Launch(s2, s);
}

}  // namespace simgpu_test
