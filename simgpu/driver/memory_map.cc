#include "simgpu/driver/memory_map.h"

#include <algorithm>

namespace simgpu {
namespace {

constexpr uint64_t kSmall = uint64_t{1} << 20;  // smaller blocks share pages
constexpr uint64_t kAlignment = 512;            // CUDA C++ Programming Guide: at least 256

uint64_t RoundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

template <typename Map>
typename Map::iterator FindIn(Map& map, uint64_t address) {
  auto it = map.upper_bound(address);
  return it == map.begin() ? map.end() : std::prev(it);
}

template <typename Map>
uint64_t NextStart(const Map& map, uint64_t address) {
  auto it = map.upper_bound(address);
  return it == map.end() ? ~uint64_t{0} : it->first;
}

}  // namespace

uint64_t MemoryMap::Rounded(uint64_t bytes) { return RoundUp(bytes, bytes < kSmall ? kAlignment : kPage); }

uint64_t MemoryMap::LargestHole(const Slab& slab) {
  uint64_t largest = 0;
  for (const auto& [start, bytes] : slab.free) largest = std::max(largest, bytes);
  return largest;
}

void MemoryMap::Rank(Slab* slab, uint64_t old_hole) {
  const uint64_t hole = LargestHole(*slab);
  if (hole == old_hole) return;
  holes_.erase({slab->device, old_hole, slab->base});
  holes_.insert({slab->device, hole, slab->base});
}

bool MemoryMap::TakeFromSlab(Slab* slab, Allocation* allocation) {
  auto fit = std::find_if(slab->free.begin(), slab->free.end(),
                          [&](const auto& hole) { return hole.second >= allocation->reserved; });
  if (fit == slab->free.end()) return false;
  const uint64_t old_hole = LargestHole(*slab);
  const uint64_t base = fit->first, rest = fit->second - allocation->reserved;
  slab->free.erase(fit);
  if (rest > 0) slab->free[base + allocation->reserved] = rest;
  Rank(slab, old_hole);
  allocation->base = base;
  allocation->slab = slab;
  allocation->backing = slab->backing;
  allocation->backing_offset = base - slab->base;
  return true;
}

bool MemoryMap::AllocateSmall(Physical* physical, int device, Allocation* allocation) {
  allocation->reserved = Rounded(allocation->bytes);
  auto hole = holes_.lower_bound({device, allocation->reserved, 0});
  if (hole != holes_.end() && std::get<0>(*hole) == device) {
    return TakeFromSlab(&slabs_.at(std::get<2>(*hole)), allocation);
  }
  if (!physical->Take(kPage)) return false;
  const uint64_t base = space_.Take(kPage);
  if (base == 0) {
    physical->Give(kPage);
    return false;
  }
  Slab& slab = slabs_[base];
  slab.base = base;
  slab.device = device;
  slab.free[base] = kPage;
  slab.backing = std::make_shared<Backing>(kPage);
  holes_.insert({device, kPage, base});
  return TakeFromSlab(&slab, allocation);
}

bool MemoryMap::AllocateLarge(Physical* physical, Allocation* allocation) {
  if (allocation->bytes > physical->capacity) return false;
  allocation->reserved = Rounded(allocation->bytes);
  if (!physical->Take(allocation->reserved)) return false;
  allocation->base = space_.Take(allocation->reserved);
  if (allocation->base == 0) {
    physical->Give(allocation->reserved);
    return false;
  }
  allocation->backing = std::make_shared<Backing>(allocation->reserved);
  return true;
}

Allocation* MemoryMap::AllocateDevice(Physical* physical, int device, uint64_t bytes) {
  Allocation allocation;
  allocation.bytes = bytes;
  allocation.device = device;
  allocation.id = next_id_++;
  const bool done =
      bytes < kSmall ? AllocateSmall(physical, device, &allocation) : AllocateLarge(physical, &allocation);
  if (!done) return nullptr;
  Changed();
  const uint64_t base = allocation.base;
  return &(allocations_[base] = std::move(allocation));
}

Allocation* MemoryMap::AddHost(AllocationKind kind, uint64_t base, uint64_t bytes) {
  Allocation& allocation = allocations_[base];
  allocation.base = base;
  allocation.bytes = allocation.reserved = bytes;
  allocation.kind = kind;
  allocation.id = next_id_++;
  Changed();
  return &allocation;
}

void MemoryMap::FreeSmall(Allocation* allocation, Physical* physical) {
  Slab* slab = allocation->slab;
  const uint64_t old_hole = LargestHole(*slab);
  uint64_t base = allocation->base, bytes = allocation->reserved;
  auto next = slab->free.lower_bound(base);
  if (next != slab->free.end() && next->first == base + bytes) {
    bytes += next->second;
    next = slab->free.erase(next);
  }
  if (next != slab->free.begin() && std::prev(next)->first + std::prev(next)->second == base) {
    base = std::prev(next)->first;
    bytes += std::prev(next)->second;
  }
  slab->free[base] = bytes;
  if (bytes < kPage) {
    Rank(slab, old_hole);
    return;
  }
  holes_.erase({slab->device, old_hole, slab->base});
  space_.Give(slab->base, kPage);
  physical->Give(kPage);
  slabs_.erase(slab->base);
}

void MemoryMap::Free(Allocation* allocation, Physical* physical) {
  if (allocation->kind == AllocationKind::kDevice) {
    if (allocation->slab != nullptr) {
      FreeSmall(allocation, physical);
    } else {
      space_.Give(allocation->base, allocation->reserved);
      physical->Give(allocation->reserved);
    }
  }
  Changed();
  allocations_.erase(allocation->base);
}

Allocation* MemoryMap::FindAllocation(uint64_t address) {
  auto it = FindIn(allocations_, address);
  if (it == allocations_.end() || address >= it->first + std::max<uint64_t>(it->second.bytes, 1)) return nullptr;
  return &it->second;
}

Allocation* MemoryMap::FindAllocationStart(uint64_t address) {
  auto it = allocations_.find(address);
  return it == allocations_.end() ? nullptr : &it->second;
}

Reservation* MemoryMap::FindReservation(uint64_t address, uint64_t* base) {
  auto it = FindIn(reservations_, address);
  if (it == reservations_.end() || address >= it->first + it->second.bytes) return nullptr;
  if (base != nullptr) *base = it->first;
  return &it->second;
}

Mapping* MemoryMap::FindMapping(uint64_t address, uint64_t* base) {
  auto it = FindIn(mappings_, address);
  if (it == mappings_.end() || address >= it->first + it->second.bytes) return nullptr;
  if (base != nullptr) *base = it->first;
  return &it->second;
}

Span MemoryMap::Bytes(uint64_t address, bool write) {
  if (Allocation* a = FindAllocation(address); a != nullptr) {
    const uint64_t offset = address - a->base;
    if (a->kind != AllocationKind::kDevice) return {reinterpret_cast<char*>(address), a->bytes - offset, true};
    char* data = write ? a->backing->Data() : a->backing->Existing();
    if (data == nullptr) return {nullptr, a->bytes - offset, !write};
    return {data + a->backing_offset + offset, a->bytes - offset, true};
  }
  uint64_t base = 0;
  if (Mapping* m = FindMapping(address, &base); m != nullptr) {
    const uint64_t offset = address - base;
    if (m->access == 0) return {};
    char* data = write ? m->handle->backing.Data() : m->handle->backing.Existing();
    if (data == nullptr) return {nullptr, m->bytes - offset, !write};
    return {data + m->offset + offset, m->bytes - offset, true};
  }
  if (space_.Owns(address) || FindReservation(address, nullptr) != nullptr) return {};
  return {reinterpret_cast<char*>(address), NextStart(allocations_, address) - address, true};
}

Region MemoryMap::Find(uint64_t address) {
  if (Allocation* a = FindAllocation(address); a != nullptr) {
    const bool device = a->kind == AllocationKind::kDevice;
    return {device ? RegionKind::kAllocation : RegionKind::kHost,
            a->base,
            a->base + std::max<uint64_t>(a->bytes, 1),
            true,
            device ? &a->arena : nullptr,
            a->device,
            device ? &a->uses : nullptr};
  }
  uint64_t base = 0;
  if (Mapping* m = FindMapping(address, &base); m != nullptr) {
    return {RegionKind::kMapped, base,    base + m->bytes, m->access != 0, &m->reservation->arena,
            m->handle->device,   &m->uses};
  }
  Region gap;
  gap.begin = address;
  gap.end = std::min(NextStart(allocations_, address), NextStart(mappings_, address));
  uint64_t start = 0;
  if (Reservation* r = FindReservation(address, &start); r != nullptr) {
    gap.kind = RegionKind::kUnmapped;
    gap.arena = &r->arena;
    gap.end = std::min(gap.end, start + r->bytes);
  } else {
    gap.end = std::min(gap.end, NextStart(reservations_, address));
    if (space_.Owns(address)) gap.kind = RegionKind::kUnmapped;
  }
  return gap;
}

}  // namespace simgpu
