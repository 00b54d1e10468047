#include "tools/report/columns.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace hotpack {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
std::string Packed(const std::vector<uint64_t>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

template <typename T>
absl::StatusOr<std::vector<uint64_t>> Unpacked(const std::string& bytes, size_t count) {
  if (bytes.size() != count * sizeof(T)) {
    return absl::InvalidArgumentError(absl::StrCat(bytes.size(), " bytes for ", count, " numbers"));
  }
  std::vector<uint64_t> values(count);
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<uint64_t>(value);
  }
  return values;
}

// Returns whether the numbers rise by the same step each time.
bool InSteps(const std::vector<uint64_t>& values) {
  if (values.size() < 3 || values[1] < values[0]) return false;
  const uint64_t step = values[1] - values[0];
  for (size_t i = 2; i < values.size(); ++i) {
    if (values[i] != values[i - 1] + step) return false;
  }
  return true;
}

}  // namespace

std::string Base64(std::string_view bytes) { return absl::Base64Escape(absl::string_view(bytes.data(), bytes.size())); }

Json Column(const std::vector<uint64_t>& values) {
  const uint64_t most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  const uint64_t least = values.empty() ? 0 : *std::min_element(values.begin(), values.end());
  if (most == least) return {{"type", "same"}, {"count", values.size()}, {"value", most}};
  if (InSteps(values)) {
    return {{"type", "steps"}, {"count", values.size()}, {"first", values[0]}, {"step", values[1] - values[0]}};
  }
  auto column = [&](const char* type, const std::string& bytes) {
    return Json{{"type", type}, {"count", values.size()}, {"data", Base64(bytes)}};
  };
  if (most <= UINT8_MAX) return column("u8", Packed<uint8_t>(values));
  if (most <= UINT16_MAX) return column("u16", Packed<uint16_t>(values));
  if (most <= UINT32_MAX) return column("u32", Packed<uint32_t>(values));
  return column("f64", Packed<double>(values));
}

absl::StatusOr<std::vector<uint64_t>> ReadColumn(const Json& column) {
  const std::string type = column.value("type", "");
  const auto count = column.value("count", uint64_t{0});
  if (type == "same") return std::vector<uint64_t>(count, column.value("value", uint64_t{0}));
  if (type == "steps") {
    std::vector<uint64_t> values(count);
    for (size_t i = 0; i < count; ++i)
      values[i] = column.value("first", uint64_t{0}) + i * column.value("step", uint64_t{0});
    return values;
  }
  std::string bytes;
  if (!absl::Base64Unescape(column.value("data", ""), &bytes)) return absl::InvalidArgumentError("not base64");
  if (type == "u8") return Unpacked<uint8_t>(bytes, count);
  if (type == "u16") return Unpacked<uint16_t>(bytes, count);
  if (type == "u32") return Unpacked<uint32_t>(bytes, count);
  if (type == "f64") return Unpacked<double>(bytes, count);
  return absl::InvalidArgumentError(absl::StrCat("'", type, "' is no type of a column"));
}

}  // namespace hotpack
