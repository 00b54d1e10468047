// Copies and sets the bytes of the simulated memory. Device memory that was never written is zero and takes no host
// memory, so copying or setting zeros there does nothing.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "simgpu/driver/state.h"

namespace simgpu {

namespace {

bool IsDeviceMemory(Driver& d, uint64_t address) {
  const Allocation* allocation = d.memory.FindAllocation(address);
  if (allocation != nullptr) return allocation->kind == AllocationKind::kDevice;
  uint64_t base = 0;
  return d.memory.FindMapping(address, &base) != nullptr;
}

// `something`: the bytes may be nonzero.
void NoteWrite(Driver& d, uint64_t address, uint64_t bytes, bool something) {
  if (d.keep_values) return;
  if (something && IsDeviceMemory(d, address)) {
    d.written.Add(address, bytes);
  } else if (!d.written.empty()) {
    d.written.Remove(address, bytes);
  }
}

constexpr uint64_t kLargeWrite = uint64_t{1} << 20;

// With SIMGPU_VALUES=small a write of so many bytes leaves zeros, which take no host memory.
bool Drops(Driver& d, uint64_t to, uint64_t bytes) {
  return d.drop_large && bytes >= kLargeWrite && IsDeviceMemory(d, to);
}

// Zeroes host bytes that back device memory. Gives whole pages back to the operating system.
void ZeroBacking(char* data, uint64_t bytes) {
  constexpr uint64_t kHostPage = 4096;
  const auto begin = reinterpret_cast<uint64_t>(data), end = begin + bytes;
  const uint64_t first = (begin + kHostPage - 1) / kHostPage * kHostPage, last = end / kHostPage * kHostPage;
  char* const pages = reinterpret_cast<char*>(first);
  bool given = false;
  if (bytes >= kLargeWrite) {
    // Pages of a file (Backing::Share) are removed from it. Others belong to no file, so that removing is EINVAL.
    given = madvise(pages, last - first, MADV_REMOVE) == 0 ||
            (errno == EINVAL && madvise(pages, last - first, MADV_DONTNEED) == 0);
  }
  if (!given) {
    memset(data, 0, bytes);
    return;
  }
  memset(data, 0, first - begin);
  memset(data + (last - begin), 0, end - last);
}

}  // namespace

void HandedToKernel(Driver& d, uint64_t address) {
  if (d.written.empty()) return;
  const Written::Range range = d.written.Take(address);
  const char zero = 0;
  if (range.bytes > 0) FillBytes(d, range.start, &zero, 1, range.bytes);
}

void WrittenByLibrary(Driver& d, uint64_t address, uint64_t bytes) {
  const char zero = 0;
  if (!d.written.empty()) FillBytes(d, address, &zero, 1, bytes);
}

CUresult MoveBytes(Driver& d, uint64_t to, uint64_t from, uint64_t bytes) {
  const uint64_t start = to, total = bytes;
  bool something = false;
  const char zero = 0;
  if (Drops(d, to, bytes)) return FillBytes(d, to, &zero, 1, bytes);
  while (bytes > 0) {
    const Span source = d.memory.Bytes(from, false);
    Span target = d.memory.Bytes(to, false);
    if (!source.ok || !target.ok) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t step = std::min({bytes, source.bytes, target.bytes});
    something = something || source.data != nullptr;
    if (source.data != nullptr || target.data != nullptr) {
      target = d.memory.Bytes(to, true);
      if (!target.ok) return CUDA_ERROR_OUT_OF_MEMORY;
      if (source.data != nullptr) {
        memmove(target.data, source.data, step);
      } else {
        memset(target.data, 0, step);
      }
    }
    to += step;
    from += step;
    bytes -= step;
  }
  NoteWrite(d, start, total, something);
  return CUDA_SUCCESS;
}

CUresult FillBytes(Driver& d, uint64_t to, const void* pattern, unsigned pattern_bytes, uint64_t bytes) {
  const char* unit = static_cast<const char*>(pattern);
  const bool zero = std::all_of(unit, unit + pattern_bytes, [](char c) { return c == 0; }) || Drops(d, to, bytes);
  const bool same = std::all_of(unit, unit + pattern_bytes, [&](char c) { return c == unit[0]; });
  for (uint64_t done = 0; done < bytes;) {
    Span target = d.memory.Bytes(to + done, false);
    if (!target.ok) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t step = std::min(bytes - done, target.bytes);
    if (target.data != nullptr || !zero) {
      target = d.memory.Bytes(to + done, true);
      if (!target.ok) return CUDA_ERROR_OUT_OF_MEMORY;
      if (zero && IsDeviceMemory(d, to + done)) {
        ZeroBacking(target.data, step);
      } else if (same) {
        memset(target.data, unit[0], step);
      } else {
        for (uint64_t i = 0; i < step; ++i) target.data[i] = unit[(done + i) % pattern_bytes];
      }
    }
    done += step;
  }
  NoteWrite(d, to, bytes, !zero);
  return CUDA_SUCCESS;
}

}  // namespace simgpu
