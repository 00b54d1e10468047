#include "preload/process/debug_options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "packer/block_unit.h"
#include "preload/process/option_table.h"

namespace hotpack {
namespace {

constexpr uint64_t kMaxGap = uint64_t{1} << 30;

// Returns the positive decimal number that fills [begin, end); 0 if it is none.
uint64_t Number(const char* begin, const char* end) {
  if (begin == end || *begin < '0' || *begin > '9') return 0;
  char* stop = nullptr;
  const unsigned long long number = strtoull(begin, &stop, 10);
  return stop == end && number < (1ull << 40) ? number : 0;
}

bool Is(const char* begin, const char* end, const char* word) {
  const size_t length = strlen(word);
  return static_cast<size_t>(end - begin) == length && memcmp(begin, word, length) == 0;
}

bool StartsWith(const char* begin, const char* end, const char* word) {
  const size_t length = strlen(word);
  return static_cast<size_t>(end - begin) > length && memcmp(begin, word, length) == 0;
}

bool ReadWord(const char* begin, const char* end, GuardOptions* guard) {
  if (Is(begin, end, "poison")) {
    guard->poison = true;
    return true;
  }
  if (Is(begin, end, "guard")) {
    guard->gap_bytes = kBlockUnit;
    return true;
  }
  if (!StartsWith(begin, end, "guard:")) return false;
  const uint64_t bytes = Number(begin + strlen("guard:"), end);
  guard->gap_bytes = RoundUpToUnit(bytes);
  return bytes > 0 && bytes <= kMaxGap;
}

}  // namespace

// BYTES: before and after each block, rounded up to 512, at most 1 GiB.
bool ParseDebug(const char* value, Options* options) {
  GuardOptions guard;
  for (const char* at = value;; ++at) {
    const char* end = at + strcspn(at, ",");
    if (!ReadWord(at, end, &guard)) return false;
    at = end;
    if (*at == '\0') break;
  }
  options->guard = guard;
  return true;
}

bool ParseOvercommit(const char* value, Options* options) {
  const char* end = value + strlen(value);
  if (Is(value, end, "off")) {
    options->overcommit = false;
    return true;
  }
  const bool sized = StartsWith(value, end, "managed:");
  const uint64_t mebibytes = sized ? Number(value + strlen("managed:"), end) : 0;
  if (!Is(value, end, "managed") && (mebibytes == 0 || mebibytes >= (uint64_t{1} << 30))) return false;
  options->overcommit = true;
  options->overcommit_bytes = mebibytes << 20;
  return true;
}

uint64_t ManagedLimit(const Options& options, uint64_t device_bytes) {
  if (!options.overcommit) return 0;
  if (options.overcommit_bytes != 0) return options.overcommit_bytes;
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  const uint64_t host = pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : 0;
  return std::min(2 * device_bytes, host / 2);
}

}  // namespace hotpack
