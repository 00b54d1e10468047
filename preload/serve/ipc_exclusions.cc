#include "preload/serve/ipc_exclusions.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "packer/block_unit.h"
#include "preload/process/log.h"
#include "preload/process/options.h"

namespace hotpack {

constinit std::atomic<int> outside_sizes{-1};

namespace {

constexpr int kSizes = 256;
constexpr int kUnread = -1;
constexpr uint64_t kMaxBytes = uint64_t{1} << 60;

// In units of 512 bytes; 0: none. Some of the first `outside_sizes` may still be 0.
constinit std::atomic<uint64_t> sizes[kSizes] = {};

// For any number of bytes; UnitsOf() counts only up to 2^32 units.
uint64_t AnyUnitsOf(uint64_t bytes) { return bytes / kBlockUnit + (bytes % kBlockUnit != 0 ? 1 : 0); }

bool Contains(uint64_t units) {
  for (int i = 0, n = outside_sizes.load(std::memory_order_acquire); i < n; ++i) {
    if (sizes[i].load(std::memory_order_relaxed) == units) return true;
  }
  return false;
}

// Returns the index in `sizes`; -1 if it is full. *added: the size is new.
int Insert(uint64_t units, bool* added) {
  for (int i = 0; i < kSizes; ++i) {
    uint64_t there = 0;
    *added = sizes[i].compare_exchange_strong(there, units);
    if (*added || there == units) return i;
  }
  return -1;
}

// HOTPACK_IPC=BYTES[,BYTES]... Thread-safe: two threads insert the same sizes before either counts them.
void ReadSizes() {
  const char* text = GetOptions().ipc_sizes;
  int end_of_sizes = 0;
  bool added = false, good = true;
  while (good && text != nullptr && *text != '\0') {
    char* end = nullptr;
    const unsigned long long bytes = strtoull(text, &end, 10);
    good = *text >= '0' && *text <= '9' && bytes > 0 && bytes <= kMaxBytes && (*end == '\0' || *end == ',');
    if (!good) break;
    end_of_sizes = std::max(end_of_sizes, Insert(AnyUnitsOf(bytes), &added) + 1);
    text = *end == ',' ? end + 1 : end;
  }
  int unread = kUnread;
  const bool first = outside_sizes.compare_exchange_strong(unread, end_of_sizes);
  if (first && !good) Log("HOTPACK_IPC: \"%s\" is not a list of sizes in bytes; it is ignored from there on", text);
}

}  // namespace

bool IsOutsideSize(uint64_t bytes) {
  if (outside_sizes.load(std::memory_order_acquire) == kUnread) ReadSizes();
  return Contains(AnyUnitsOf(bytes));
}

bool KeepOutside(uint64_t bytes) {
  if (outside_sizes.load(std::memory_order_acquire) == kUnread) ReadSizes();
  bool added = false;
  const int place = bytes > 0 && bytes <= kMaxBytes ? Insert(AnyUnitsOf(bytes), &added) : -1;
  if (place < 0) return false;
  for (int seen = outside_sizes.load(); seen <= place && !outside_sizes.compare_exchange_weak(seen, place + 1);) {
  }
  return added;
}

void ListOutside(char* text, size_t size) {
  text[0] = '\0';
  size_t used = 0;
  for (int i = 0, n = outside_sizes.load(std::memory_order_acquire); i < n; ++i) {
    const unsigned long long bytes = sizes[i].load(std::memory_order_relaxed) * kBlockUnit;
    if (bytes == 0) continue;
    const int length = snprintf(text + used, size - used, "%s%llu", used > 0 ? "," : "", bytes);
    if (length < 0 || static_cast<size_t>(length) >= size - used) {
      text[used] = '\0';
      return;
    }
    used += static_cast<size_t>(length);
  }
}

}  // namespace hotpack
