// Sequences of operations in few words, for the tests of this folder.
#pragma once

#include <random>

#include "remat/dqn/operations.h"

namespace hotpack::remat {

inline constexpr Nanoseconds kSecond = 1'000'000'000;

// Figure 4 and section 4.6 of the paper: operations of one second, an offload of x of a second and a half.
//
//   0 read w   1 malloc x   2 write x   3 read x   4 malloc y   5 write y   6 read y   7 free y   8 read x   9 free x
//
// x may be absent from the end of node 3 to node 8. w takes 1 byte, x and y 10 each.
Sequence WorkedExample();

// Returns a chain of layers forward and back: x0 is given, layer i makes xi from x(i-1), its gradient reads x(i-1) and
// xi. Sizes and times are random.
Sequence RandomChain(std::mt19937_64& random, int layers);

}  // namespace hotpack::remat
