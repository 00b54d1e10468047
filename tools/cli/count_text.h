// Counts of things as text.
#pragma once

#include <cstdint>
#include <string>

namespace hotpack {

// Formats a count: "1 stream", "2 streams", "0 processes", "3 copies". `thing`: the singular of a regular noun.
inline std::string CountText(uint64_t count, std::string thing) {
  const auto ends = [&thing](const std::string& end) {
    return thing.size() >= end.size() && thing.compare(thing.size() - end.size(), end.size(), end) == 0;
  };
  if (count == 1) return "1 " + thing;
  if (ends("y") && !ends("ay") && !ends("ey") && !ends("oy")) {
    thing.replace(thing.size() - 1, 1, "ies");
  } else {
    thing += ends("s") || ends("ch") || ends("sh") ? "es" : "s";
  }
  return std::to_string(count) + " " + thing;
}

}  // namespace hotpack
