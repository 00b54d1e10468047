#include "simgpu/driver/address_space.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace simgpu {
namespace {

constexpr uint64_t kRegion = uint64_t{64} << 30;  // reserved at a time
constexpr uint64_t kSmallestRegion = uint64_t{256} << 20;

uint64_t MapWithoutAccess(uint64_t bytes, uint64_t wanted) {
  void* at =
      mmap(reinterpret_cast<void*>(wanted), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? 0 : reinterpret_cast<uint64_t>(at);
}

}  // namespace

Backing::~Backing() {
  if (data_ != nullptr) munmap(data_, bytes_);
  if (file_ >= 0) close(file_);
}

int Backing::Share(const char* name) {
  if (file_ >= 0) return file_;
  const int file = memfd_create(name, MFD_CLOEXEC);
  if (file < 0) return -1;
  const char* const before = data_;
  if (ftruncate(file, static_cast<off_t>(bytes_)) != 0 || !Adopt(file)) {
    close(file);
    return -1;
  }
  if (before != nullptr) memcpy(data_, before, bytes_);
  if (before != nullptr) munmap(const_cast<char*>(before), bytes_);
  return file_;
}

bool Backing::Adopt(int file) {
  void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (at == MAP_FAILED) return false;
  data_ = static_cast<char*>(at);
  file_ = file;
  return true;
}

char* Backing::Data() {
  if (data_ == nullptr) {
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) data_ = static_cast<char*>(at);
  }
  return data_;
}

uint64_t ReserveAddresses(uint64_t bytes, uint64_t alignment, uint64_t wanted) {
  alignment = std::max(alignment, kPage);
  if (bytes > (uint64_t{1} << 46) || alignment > (uint64_t{1} << 46)) return 0;
  if (wanted != 0 && wanted % alignment == 0) {
    const uint64_t at = MapWithoutAccess(bytes, wanted);
    if (at == wanted) return at;
    if (at != 0) munmap(reinterpret_cast<void*>(at), bytes);
  }
  const uint64_t raw = MapWithoutAccess(bytes + alignment, 0);
  if (raw == 0) return 0;
  const uint64_t base = (raw + alignment - 1) / alignment * alignment;
  if (base > raw) munmap(reinterpret_cast<void*>(raw), base - raw);
  const uint64_t tail = raw + bytes + alignment - (base + bytes);
  if (tail > 0) munmap(reinterpret_cast<void*>(base + bytes), tail);
  return base;
}

void ReleaseAddresses(uint64_t address, uint64_t bytes) { munmap(reinterpret_cast<void*>(address), bytes); }

void AddressSpace::Remove(std::map<uint64_t, uint64_t>::iterator range) {
  auto [first, last] = by_size_.equal_range(range->second);
  by_size_.erase(std::find_if(first, last, [&](const auto& r) { return r.second == range->first; }));
  free_.erase(range);
}

void AddressSpace::Insert(uint64_t address, uint64_t bytes) {
  free_[address] = bytes;
  by_size_.emplace(bytes, address);
}

uint64_t AddressSpace::Take(uint64_t bytes) {
  auto fit = by_size_.lower_bound(bytes);
  if (fit == by_size_.end()) {
    // Smaller where the process's address space is limited.
    for (uint64_t size = std::max(kRegion, bytes); size >= bytes; size /= 4) {
      const uint64_t base = ReserveAddresses(size, kPage, 0);
      if (base != 0) {
        regions_[base] = size;
        Insert(base, size);
        break;
      }
      if (size / 4 < std::max(bytes, kSmallestRegion)) return 0;
    }
    fit = by_size_.lower_bound(bytes);
    if (fit == by_size_.end()) return 0;
  }
  const uint64_t address = fit->second;
  const uint64_t rest = fit->first - bytes;
  free_.erase(address);
  by_size_.erase(fit);
  if (rest > 0) Insert(address + bytes, rest);
  return address;
}

void AddressSpace::Give(uint64_t address, uint64_t bytes) {
  auto next = free_.lower_bound(address);
  if (next != free_.end() && next->first == address + bytes) {
    bytes += next->second;
    auto dead = next++;
    Remove(dead);
  }
  if (next != free_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == address) {
      address = before->first;
      bytes += before->second;
      Remove(before);
    }
  }
  Insert(address, bytes);
}

bool AddressSpace::Owns(uint64_t address) const {
  auto it = regions_.upper_bound(address);
  return it != regions_.begin() && address < std::prev(it)->first + std::prev(it)->second;
}

}  // namespace simgpu
