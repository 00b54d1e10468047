// Random instances for property tests.
#pragma once

#include <cstdint>
#include <random>

#include "packer/types.h"
#include "tests/runs.h"

namespace hotpack::testing {

// Returns $HOTPACK_TEST_SEED, else a fixed number. Printed once per program, so that a failure can be repeated.
uint64_t TestSeed();

struct InstanceShape {
  int blocks = 50;
  Clock clocks = 60;      // residency lies in [0, clocks)
  Bytes largest = 64;     // sizes are in [1, largest]
  double alignments = 0;  // share of blocks with an alignment of 2 to 8
  double carried = 0;     // share of blocks resident at both ends of time
  double gaps = 0;        // share of blocks with up to three residency intervals
  double pinned = 0;      // share of blocks pinned to where first-fit in index order has them
};

Instance RandomInstance(const InstanceShape& shape, std::mt19937_64* random);

// Sizes so different, some aligned, carried or in several intervals, that the lower bound cannot be reached. With
// enough blocks every search runs until it is stopped.
Instance ManySizedInstance(int blocks, uint64_t seed);

// A shape with some, none or all of the features, 0 to 60 blocks.
InstanceShape RandomShape(std::mt19937_64* random);

// True when the two blocks are resident at some clock value together. Plain, for checks.
bool ResidentTogether(const Block& a, const Block& b);

}  // namespace hotpack::testing
