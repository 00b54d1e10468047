#include "planner/load.h"

#include <algorithm>

namespace hotpack::planner {

std::vector<Bytes> LoadOf(const std::vector<Stay>& stays) {
  Clock end = 0;
  for (const Stay& stay : stays) end = std::max(end, stay.end);
  std::vector<Bytes> load(static_cast<size_t>(end) + 1);
  for (const Stay& stay : stays) {
    load[static_cast<size_t>(stay.begin)] += stay.bytes;
    load[static_cast<size_t>(stay.end)] -= stay.bytes;
  }
  for (size_t i = 1; i < load.size(); ++i) load[i] += load[i - 1];
  load.pop_back();
  return load;
}

}  // namespace hotpack::planner
