// Written against a model that knows of each byte which write it is from.
#include "simgpu/driver/written.h"

#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace simgpu {
namespace {

constexpr uint64_t kBytes = 200;

// A write may be in several pieces when newer ones have cut it: a piece is a run of bytes of one write.
struct Model {
  std::vector<int> from = std::vector<int>(kBytes, 0);  // 0: nothing of interest
  int writes = 0;

  void Set(uint64_t address, uint64_t bytes, int write) {
    for (uint64_t i = address; i < address + bytes; ++i) from[i] = write;
  }
  Written::Range Take(uint64_t address) {
    const int write = from[address];
    if (write == 0) return {};
    uint64_t start = address, end = address + 1;
    while (start > 0 && from[start - 1] == write) --start;
    while (end < kBytes && from[end] == write) ++end;
    Set(start, end - start, 0);
    return {start, end - start};
  }
};

TEST(WrittenTest, AgreesWithAModelOfBytes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random); };
  for (int round = 0; round < 200; ++round) {
    Written written;
    Model model;
    for (int step = 0; step < 100; ++step) {
      const uint64_t address = below(kBytes), bytes = below(kBytes - address + 1);
      switch (below(3)) {
        case 0:
          written.Add(address, bytes);
          model.Set(address, bytes, ++model.writes);
          break;
        case 1:
          written.Remove(address, bytes);
          model.Set(address, bytes, 0);
          break;
        default: {
          const Written::Range got = written.Take(address), expected = model.Take(address);
          ASSERT_EQ(got.bytes, expected.bytes) << "step " << step;
          if (got.bytes > 0) {
            ASSERT_EQ(got.start, expected.start) << "step " << step;
          }
        }
      }
      ASSERT_EQ(written.empty(), std::set<int>(model.from.begin(), model.from.end()) == std::set<int>{0});
    }
  }
}

}  // namespace
}  // namespace simgpu
