#include "tools/cli/nearest_name.h"

#include <algorithm>
#include <cstddef>

namespace hotpack {
namespace {

// Damerau's distance, without edits inside a swap.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> least(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) least[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) least[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = least[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      least[i][j] = std::min({least[i - 1][j] + 1, least[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) least[i][j] = std::min(least[i][j], least[i - 2][j - 2] + 1);
    }
  }
  return least[a.size()][b.size()];
}

}  // namespace

std::string NearestName(const std::string& text, const std::vector<std::string>& names) {
  constexpr size_t kLongest = 64, kMost = 3, kPrefix = 3;
  if (text.size() > kLongest) return "";
  size_t least = std::min(kMost, std::max<size_t>(1, text.size() / 3)) + 1;
  std::string nearest;
  for (const std::string& name : names) {
    const bool begins = text.size() >= kPrefix && name.compare(0, text.size(), text) == 0;
    const size_t distance = begins ? 1 : EditDistance(text, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace hotpack
