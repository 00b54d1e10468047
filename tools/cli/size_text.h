// Sizes and durations as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class Validator;
}  // namespace CLI

namespace hotpack {

// Bytes: "4096", "512K", "300M", "2GiB"; the units are powers of 1024, but kB, MB, GB and TB powers of 1000. Nothing if
// `text` is no size or above 2^60.
std::optional<int64_t> ParseSize(const std::string& text);

// Nanoseconds: "500ms", "2s", "0.5s", "20us", "1m". Nothing if `text` is no duration, not above 0, or above a day.
std::optional<int64_t> ParseDuration(const std::string& text);

// Bytes for people: "700 B", "9.5 KiB", "300.0 MiB".
std::string FormatSize(uint64_t bytes);

// The checks of options that hold one.
CLI::Validator SizeOption();
CLI::Validator DurationOption();

}  // namespace hotpack
