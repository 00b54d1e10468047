#include "tools/check/losses.h"

#include <fstream>
#include <iterator>

namespace hotpack::check {
namespace {

// Returns the first difference of two runs: "line 3: 0x1.8p+1, not 0x1.7p+1".
std::string FirstDifference(const std::string& expected, const std::string& seen) {
  size_t line = 1;
  for (size_t from = 0, other = 0;; ++line) {
    const size_t end = expected.find('\n', from), other_end = seen.find('\n', other);
    if (end == std::string::npos || other_end == std::string::npos) break;
    const std::string a = expected.substr(from, end - from), b = seen.substr(other, other_end - other);
    if (a != b) return "line " + std::to_string(line) + ": " + b + ", not " + a;
    from = end + 1;
    other = other_end + 1;
  }
  return "the numbers of losses differ after line " + std::to_string(line - 1);
}

}  // namespace

std::optional<std::string> ReadLosses(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::optional<std::string> AgreeOnLosses(const std::optional<std::string>& first,
                                         const std::optional<std::string>& second, bool simulated, Step* step) {
  if (!first || !second) return std::nullopt;
  const std::string expected = "two runs without hotpack agree bit for bit";
  if (first->empty()) {
    step->Check(false, "losses", "the program writes its losses", "the file is empty");
  } else if (simulated) {
    step->findings.push_back({"losses", Result::kSkip, "", "the simulated device computes nothing"});
  } else if (*first == *second) {
    step->Check(true, "losses", expected, "they do");
    return first;
  } else {
    step->findings.push_back({"losses", Result::kSkip, expected, FirstDifference(*first, *second)});
  }
  return std::nullopt;
}

void CheckLosses(const std::optional<std::string>& reference, const std::optional<std::string>& losses, Step* step) {
  if (step->Failed() || !reference) return;
  step->Check(losses == reference, "losses", "the losses of the runs without hotpack, bit for bit",
              !losses               ? "no file"
              : losses == reference ? "they are equal"
                                    : FirstDifference(*reference, *losses));
}

}  // namespace hotpack::check
