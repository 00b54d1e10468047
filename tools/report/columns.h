// Columns of numbers for the report page: little-endian arrays as base64 text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace hotpack {

// Returns one object with the numbers in the narrowest of these types that holds all of them exactly:
//   {"type": "same", "count": n, "value": v}                     n times the same number
//   {"type": "steps", "count": n, "first": v, "step": s}         v, v + s, v + 2 s, ...
//   {"type": "u8" | "u16" | "u32" | "f64", "count": n, "data": base64}
// Numbers are ≤ 2^53, so that a double holds them. O(n).
nlohmann::ordered_json Column(const std::vector<uint64_t>& values);

// Parses a column. The error is one line.
absl::StatusOr<std::vector<uint64_t>> ReadColumn(const nlohmann::ordered_json& column);

std::string Base64(std::string_view bytes);  // RFC 4648, with padding

}  // namespace hotpack
