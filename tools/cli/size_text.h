// Sizes and durations as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class Validator;
}  // namespace CLI

namespace hotpack {

// Parses bytes: "4096", "512K", "300M", "2GiB". Units are powers of 1024, but kB, MB, GB and TB powers of 1000. Returns
// nothing if `text` is no size or above 2^60.
std::optional<int64_t> ParseSize(const std::string& text);

// Parses nanoseconds: "500ms", "2s", "0.5s", "20us", "1m". Returns nothing if `text` is no duration, ≤ 0, or above a
// day.
std::optional<int64_t> ParseDuration(const std::string& text);

// Formats bytes: "700 B", "9.5 KiB", "300.0 MiB".
std::string FormatSize(uint64_t bytes);

// Validators of options that hold a size or a duration.
CLI::Validator SizeOption();
CLI::Validator DurationOption();

}  // namespace hotpack
