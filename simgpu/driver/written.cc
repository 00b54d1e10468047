#include "simgpu/driver/written.h"

#include <iterator>

namespace simgpu {

void Written::Add(uint64_t address, uint64_t bytes) {
  Remove(address, bytes);
  if (bytes > 0) ends_[address] = address + bytes;
}

void Written::Remove(uint64_t address, uint64_t bytes) {
  if (bytes == 0) return;
  const uint64_t end = address + bytes;
  auto it = ends_.lower_bound(address);
  if (it != ends_.begin()) {
    const auto before = std::prev(it);
    const uint64_t before_end = before->second;
    if (before_end > address) {
      before->second = address;
      if (before_end > end) ends_[end] = before_end;
    }
  }
  while (it != ends_.end() && it->first < end) {
    const uint64_t its_end = it->second;
    it = ends_.erase(it);
    if (its_end > end) {
      ends_[end] = its_end;
      return;
    }
  }
}

Written::Range Written::Take(uint64_t address) {
  auto it = ends_.upper_bound(address);
  if (it == ends_.begin()) return {};
  --it;
  if (it->second <= address) return {};
  const Range range{it->first, it->second - it->first};
  ends_.erase(it);
  return range;
}

}  // namespace simgpu
