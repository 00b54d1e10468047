#include "preload/options.h"

#include <link.h>

#include <cstdlib>
#include <cstring>

#include "preload/log.h"

namespace hotpack {
namespace {

struct Strings {
  char stats_dir[4096];
  char trace[4096];
  char plan[4096];
};
constinit Strings strings = {};

const char* Copy(const char* variable, char* out, size_t size) {
  const char* value = getenv(variable);
  if (value == nullptr || value[0] == '\0') return nullptr;
  if (strlen(value) >= size) {
    Log("%s is too long and is ignored", variable);
    return nullptr;
  }
  memcpy(out, value, strlen(value) + 1);
  return out;
}

// compute-sanitizer checks accesses against the allocations that the driver knows, so blocks that are parts of an arena
// would blind it. It injects this library into the program.
bool UnderComputeSanitizer() {
  return dl_iterate_phdr(
             [](dl_phdr_info* info, size_t, void*) {
               return info->dlpi_name != nullptr && strstr(info->dlpi_name, "libsanitizer-collection") != nullptr ? 1 : 0;
             },
             nullptr) != 0;
}

// A positive decimal number of mebibytes, in bytes; 0: it is none.
uint64_t Mebibytes(const char* text) {
  char* end = nullptr;
  const unsigned long long mebibytes = strtoull(text, &end, 10);
  const bool good = end != text && *end == '\0' && text[0] != '-' && mebibytes > 0 && mebibytes < (1ull << 40);
  return good ? mebibytes << 20 : 0;
}

void ReadArena(const char* value, Options* options) {
  constexpr char kSized[] = "plain:";
  constexpr size_t kSizedLength = sizeof(kSized) - 1;
  if (strcmp(value, "vmm") == 0) return;
  if (strncmp(value, kSized, kSizedLength) == 0) options->plain_arena_bytes = Mebibytes(value + kSizedLength);
  if (strcmp(value, "plain") == 0 || options->plain_arena_bytes > 0) {
    options->arena = ArenaKind::kPlain;
  } else {
    Log("HOTPACK_ARENA=%s is not vmm, plain or plain:MEBIBYTES; vmm is used", value);
  }
}

Options Read() {
  Options options;
  const char* enabled = getenv("HOTPACK");
  options.enabled = enabled == nullptr || strcmp(enabled, "0") != 0;
  if (!options.enabled) return options;
  if (UnderComputeSanitizer()) {
    options.enabled = false;
    Log("compute-sanitizer is active: allocations are left to the driver");
    return options;
  }
  if (const char* sync = getenv("HOTPACK_FREE_SYNC")) {
    options.free_sync_always = strcmp(sync, "always") == 0;
    if (!options.free_sync_always && strcmp(sync, "auto") != 0) {
      Log("HOTPACK_FREE_SYNC=%s is neither auto nor always; auto is used", sync);
    }
  }
  if (const char* arena = getenv("HOTPACK_ARENA")) ReadArena(arena, &options);
  options.stats_dir = Copy("HOTPACK_STATS_DIR", strings.stats_dir, sizeof(strings.stats_dir));
  options.trace = Copy("HOTPACK_TRACE", strings.trace, sizeof(strings.trace));
  options.plan = Copy("HOTPACK_PLAN", strings.plan, sizeof(strings.plan));
  if (const char* limit = getenv("HOTPACK_TRACE_LIMIT_MB")) {
    if (const uint64_t bytes = Mebibytes(limit)) {
      options.trace_limit = bytes;
    } else {
      Log("HOTPACK_TRACE_LIMIT_MB=%s is not a number of mebibytes; %llu is used", limit,
          static_cast<unsigned long long>(options.trace_limit >> 20));
    }
  }
  return options;
}

}  // namespace

const Options& GetOptions() {
  static const Options options = Read();  // trivially destructible: nothing happens at exit
  return options;
}

}  // namespace hotpack
