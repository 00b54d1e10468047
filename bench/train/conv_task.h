// A generated task for the convolutional net: distinguish gratings by their direction and colour.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/train/task.h"

namespace hotpack::train {

inline constexpr int kColors = 3;

// A class is a wave's direction and its strength in each colour. An image is that wave at a random phase, with noise.
// The pixels of every class have mean zero, so no linear function of them separates two classes.
class GratingTask {
 public:
  GratingTask(uint64_t seed, int side, int classes);
  // Returns images [rows, side, side, colours] and labels. They are a pure function of (seed, number, rows), up to the
  // last bit of the math library's cosine. Thread-safe.
  Batch MakeBatch(int64_t number, int rows) const;

 private:
  struct Wave {
    float x, y;  // radians a pixel
    float strength[kColors];
  };

  uint64_t seed_;
  int side_;
  std::vector<Wave> waves_;
};

}  // namespace hotpack::train
