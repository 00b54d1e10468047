// The load of an iteration, small enough to be stored with its figures and drawn on a terminal.
#pragma once

#include <array>
#include <cstdint>

namespace hotpack {

inline constexpr uint32_t kLoadColumns = 64;
// Bytes: the largest load among the requests of each column. Columns have as equal a number of requests as possible.
using LoadColumns = std::array<uint64_t, kLoadColumns>;

}  // namespace hotpack
