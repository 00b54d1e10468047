// Sets of a few numbers, in vectors.
#pragma once

#include <algorithm>
#include <vector>

namespace property {

template <typename T>
bool Contains(const std::vector<T>& all, T one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

template <typename T>
void Remove(std::vector<T>* all, T one) {
  const auto it = std::find(all->begin(), all->end(), one);
  if (it == all->end()) return;
  *it = all->back();
  all->pop_back();
}

}  // namespace property
