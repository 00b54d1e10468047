#include "preload/outside.h"

#include <atomic>
#include <cstdlib>

#include "preload/log.h"
#include "preload/options.h"

namespace hotpack {
namespace {

constexpr uint64_t kUnit = 512;
constexpr int kSizes = 256;
constexpr int kUnread = -1;

constinit std::atomic<uint64_t> sizes[kSizes] = {};  // in units; 0: none
constinit std::atomic<int> count{kUnread};           // of the first `count` some may still be 0

uint64_t UnitsOf(uint64_t bytes) { return bytes / kUnit + (bytes % kUnit != 0 ? 1 : 0); }

bool Contains(uint64_t units) {
  for (int i = 0, n = count.load(std::memory_order_acquire); i < n; ++i) {
    if (sizes[i].load(std::memory_order_relaxed) == units) return true;
  }
  return false;
}

bool Add(uint64_t units) {
  if (units == 0 || Contains(units)) return false;
  for (int i = 0; i < kSizes; ++i) {
    uint64_t empty = 0;
    if (!sizes[i].compare_exchange_strong(empty, units)) {
      if (empty == units) return false;
      continue;
    }
    for (int seen = count.load(); seen <= i && !count.compare_exchange_weak(seen, i + 1);) {
    }
    return true;
  }
  return false;
}

// HOTPACK_IPC=BYTES[,BYTES]... Two threads may do it at once: the same sizes are added.
void ReadSizes() {
  int unread = kUnread;
  const char* text = GetOptions().ipc_sizes;
  const bool first = count.compare_exchange_strong(unread, 0);
  while (text != nullptr && *text != '\0') {
    char* end = nullptr;
    const unsigned long long bytes = strtoull(text, &end, 10);
    const bool good = end != text && text[0] != '-' && text[0] != '+' && bytes > 0 && (*end == '\0' || *end == ',');
    if (!good) {
      if (first) Log("HOTPACK_IPC: \"%s\" is not a list of sizes in bytes; it is ignored from there on", text);
      return;
    }
    Add(UnitsOf(bytes));
    text = *end == ',' ? end + 1 : end;
  }
}

}  // namespace

bool KeptOutside(uint64_t bytes) {
  if (count.load(std::memory_order_acquire) == 0) [[likely]] return false;
  if (count.load(std::memory_order_acquire) == kUnread) ReadSizes();
  return Contains(UnitsOf(bytes));
}

bool KeepOutside(uint64_t bytes) {
  if (count.load(std::memory_order_acquire) == kUnread) ReadSizes();
  return Add(UnitsOf(bytes));
}

}  // namespace hotpack
