#include "tools/cli/size_text.h"

#include <charconv>
#include <cstdio>
#include <utility>

#include "CLI/CLI.hpp"

namespace hotpack {
namespace {

constexpr std::pair<const char*, int64_t> kSizes[] = {
    {"", 1},          {"B", 1},          {"K", 1 << 10},        {"KiB", 1 << 10},          {"M", 1 << 20},
    {"MiB", 1 << 20}, {"G", 1ll << 30},  {"GiB", 1ll << 30},    {"T", 1ll << 40},          {"TiB", 1ll << 40},
    {"kB", 1'000},    {"MB", 1'000'000}, {"GB", 1'000'000'000}, {"TB", 1'000'000'000'000},
};
constexpr std::pair<const char*, int64_t> kDurations[] = {
    {"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}, {"m", 60'000'000'000},
};

// Parses a decimal number with one of `units`. Returns nothing if it is malformed, negative or above `limit`.
template <size_t n>
std::optional<int64_t> Parse(const std::string& text, const std::pair<const char*, int64_t> (&units)[n],
                             int64_t limit) {
  double number = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || text[0] < '0' || text[0] > '9') return std::nullopt;
  std::string unit(stop, end);
  for (const auto& [name, scale] : units) {
    if (unit != name) continue;
    double value = number * static_cast<double>(scale);
    if (value > static_cast<double>(limit)) return std::nullopt;
    return static_cast<int64_t>(value);
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> ParseSize(const std::string& text) { return Parse(text, kSizes, int64_t{1} << 60); }

std::optional<int64_t> ParseDuration(const std::string& text) {
  std::optional<int64_t> value = Parse(text, kDurations, 86'400 * int64_t{1'000'000'000});
  return value.has_value() && *value > 0 ? value : std::nullopt;
}

std::string FormatSize(uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes);
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  for (value /= 1024; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  char text[32];
  snprintf(text, sizeof(text), "%.1f %s", value, units[unit]);
  return text;
}

CLI::Validator SizeOption() {
  return CLI::Validator(
      [](std::string& text) {
        return ParseSize(text).has_value() ? "" : "'" + text + "' is no size such as 4096, 512K, 300M or 2G";
      },
      "SIZE");
}

CLI::Validator DurationOption() {
  return CLI::Validator(
      [](std::string& text) {
        return ParseDuration(text).has_value() ? "" : "'" + text + "' is no duration such as 500ms or 2s";
      },
      "DURATION");
}

}  // namespace hotpack
