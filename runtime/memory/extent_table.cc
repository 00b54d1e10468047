#include "runtime/memory/extent_table.h"

namespace hotpack {

void ExtentTable::Open(DeviceAddress base, uint64_t bytes, uint64_t chunk) {
  base_ = base;
  chunk_ = chunk;
  handle_.assign(bytes / chunk, 0);
  first_.assign(bytes / chunk, 0);
  chunks_.assign(bytes / chunk, 0);
}

void ExtentTable::Register(const MappedExtent& mapped) {
  const uint64_t first = IndexOf(mapped.begin), count = mapped.extent.bytes / chunk_;
  for (uint64_t c = first; c < first + count; ++c) {
    handle_[c] = mapped.extent.handle;
    first_[c] = static_cast<uint32_t>(first);
  }
  chunks_[first] = static_cast<uint32_t>(count);
  any_large_ = any_large_ || count > 1;
}

void ExtentTable::Forget(const AddressRange& range) {
  for (uint64_t c = IndexOf(range.begin); c < IndexOf(range.begin) + range.bytes / chunk_; ++c) handle_[c] = 0;
}

bool ExtentTable::Consistent() const {
  for (uint64_t c = 0; c < handle_.size(); ++c) {
    if (handle_[c] == 0) continue;
    const uint64_t first = first_[c];
    if (c < first || c - first >= chunks_[first] || handle_[first] != handle_[c]) return false;
  }
  return true;
}

}  // namespace hotpack
