#include "runtime/memory/extent_table.h"

namespace hotpack {

void ExtentTable::Open(DeviceAddress base, uint64_t bytes, uint64_t chunk) {
  base_ = base;
  chunk_ = chunk;
  handle_.assign(bytes / chunk, 0);
  first_.assign(bytes / chunk, 0);
  chunks_.assign(bytes / chunk, 0);
}

AddressRange ExtentTable::ExtentAt(DeviceAddress address) const {
  const uint64_t c = IndexOf(address);
  if (handle_[c] == 0) return {base_ + c * chunk_, chunk_};
  return {base_ + first_[c] * chunk_, chunks_[first_[c]] * chunk_};
}

uint64_t ExtentTable::MissingChunks(DeviceAddress begin, DeviceAddress end) const {
  uint64_t missing = 0;
  for (uint64_t c = IndexOf(begin); c <= IndexOf(end - 1); ++c) missing += handle_[c] == 0;
  return missing;
}

void ExtentTable::Register(const MappedExtent& mapped) {
  const uint64_t first = IndexOf(mapped.begin), count = mapped.extent.bytes / chunk_;
  for (uint64_t c = first; c < first + count; ++c) {
    handle_[c] = mapped.extent.handle;
    first_[c] = static_cast<uint32_t>(first);
  }
  chunks_[first] = static_cast<uint32_t>(count);
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
