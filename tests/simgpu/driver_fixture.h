// A context of the simulated device, for tests of the driver API in one process.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/simgpu/support.h"

namespace simgpu_test {

// These tests make mistakes on purpose. The checker's reports of mistakes are tested elsewhere.
inline const int kUnchecked = setenv("SIMGPU_CHECK", "0", 1);

class DriverTest : public testing::Test {
 protected:
  void SetUp() override { context_ = Start(); }
  static uint64_t Free() {
    size_t free = 0, total = 0;
    EXPECT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    return free;
  }
  CUcontext context_ = nullptr;
};

}  // namespace simgpu_test
