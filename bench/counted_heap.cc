#include "bench/counted_heap.h"

#include <malloc.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace hotpack::bench {
namespace {

std::atomic<int64_t> live{0}, peak{0};

void* Count(void* pointer) {
  const int64_t now = live += static_cast<int64_t>(malloc_usable_size(pointer));
  int64_t seen = peak;
  while (now > seen && !peak.compare_exchange_weak(seen, now)) {
  }
  return pointer;
}

void* New(size_t bytes) {
  void* pointer = std::malloc(bytes != 0 ? bytes : 1);
  if (pointer == nullptr) throw std::bad_alloc();
  return Count(pointer);
}

void* New(size_t bytes, size_t alignment) {
  void* pointer = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (pointer == nullptr) throw std::bad_alloc();
  return Count(pointer);
}

void Delete(void* pointer) {
  live -= static_cast<int64_t>(malloc_usable_size(pointer));
  std::free(pointer);
}

}  // namespace

HeapBytes CountedHeap() { return {live, peak}; }
void ResetHeapPeak() { peak = live.load(); }

ResidentBytes Resident() {
  ResidentBytes resident;
  FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return resident;
  char line[256];
  long kibibytes = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "VmRSS: %ld", &kibibytes) == 1) resident.now = kibibytes * 1024;
    if (std::sscanf(line, "VmHWM: %ld", &kibibytes) == 1) resident.peak = kibibytes * 1024;
  }
  std::fclose(file);
  return resident;
}

void ResetResidentPeak() {
  FILE* file = std::fopen("/proc/self/clear_refs", "w");  // proc(5): 5 resets the peak
  if (file == nullptr) return;
  std::fputs("5", file);
  std::fclose(file);
}

}  // namespace hotpack::bench

void* operator new(size_t bytes) { return hotpack::bench::New(bytes); }
void* operator new[](size_t bytes) { return hotpack::bench::New(bytes); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return hotpack::bench::New(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return hotpack::bench::New(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* pointer) noexcept { hotpack::bench::Delete(pointer); }
void operator delete[](void* pointer) noexcept { hotpack::bench::Delete(pointer); }
void operator delete(void* pointer, size_t) noexcept { hotpack::bench::Delete(pointer); }
void operator delete[](void* pointer, size_t) noexcept { hotpack::bench::Delete(pointer); }
void operator delete(void* pointer, std::align_val_t) noexcept { hotpack::bench::Delete(pointer); }
void operator delete[](void* pointer, std::align_val_t) noexcept { hotpack::bench::Delete(pointer); }
void operator delete(void* pointer, size_t, std::align_val_t) noexcept { hotpack::bench::Delete(pointer); }
void operator delete[](void* pointer, size_t, std::align_val_t) noexcept { hotpack::bench::Delete(pointer); }
