#include "preload/process/option_table.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace hotpack {
namespace {

// Returns a positive decimal number of mebibytes, in bytes; 0 if `text` is none.
uint64_t Mebibytes(const char* text) {
  if (text[0] < '0' || text[0] > '9') return 0;
  char* end = nullptr;
  const unsigned long long mebibytes = strtoull(text, &end, 10);
  return *end == '\0' && mebibytes < (1ull << 40) ? mebibytes << 20 : 0;
}

// As tools/cli/size_text.h reads sizes: units are powers of 1024, but kB, MB, GB and TB powers of 1000. 0: malformed.
uint64_t ParseSize(const char* value) {
  constexpr struct {
    const char* name;
    uint64_t bytes;
  } kUnits[] = {{"", 1},          {"B", 1},          {"K", 1 << 10},      {"KiB", 1 << 10},     {"M", 1 << 20},
                {"MiB", 1 << 20}, {"G", 1ull << 30}, {"GiB", 1ull << 30}, {"T", 1ull << 40},    {"TiB", 1ull << 40},
                {"kB", 1000},     {"MB", 1000000},   {"GB", 1000000000},  {"TB", 1000000000000}};
  const size_t digits = strspn(value, "0123456789.");
  if (value[0] < '0' || value[0] > '9' || digits > 16) return 0;
  char* end = nullptr;
  const double number = strtod(value, &end);
  if (end != value + digits) return 0;
  for (const auto& unit : kUnits) {
    const double bytes = number * static_cast<double>(unit.bytes);
    if (strcmp(end, unit.name) == 0 && bytes >= 1 && bytes <= 1e18) return static_cast<uint64_t>(bytes);
  }
  return 0;
}

bool Matches(const char* pattern, const char* pattern_end, const char* name) {
  // On a mismatch the last star takes one more character.
  const char *star = nullptr, *star_name = nullptr;
  while (*name != '\0') {
    if (pattern != pattern_end && *pattern == '*') {
      star = ++pattern;
      star_name = name;
    } else if (pattern != pattern_end && (*pattern == '?' || *pattern == *name)) {
      ++pattern;
      ++name;
    } else if (star != nullptr) {
      pattern = star;
      name = ++star_name;
    } else {
      return false;
    }
  }
  while (pattern != pattern_end && *pattern == '*') ++pattern;
  return pattern == pattern_end;
}

// Empty patterns match nothing, so a list of only those is a mistake.
bool IsPatternList(const char* value) { return value[strspn(value, ",")] != '\0'; }

constexpr size_t kLongest = 64;  // of the names to compare

// Levenshtein distance. Both have at most kLongest characters.
size_t EditDistance(const char* a, size_t a_length, const char* b, size_t b_length) {
  size_t row[kLongest + 1];
  for (size_t j = 0; j <= b_length; ++j) row[j] = j;
  for (size_t i = 1; i <= a_length; ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b_length; ++j) {
      const size_t changed = diagonal + (a[i - 1] != b[j - 1] ? 1 : 0);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b_length];
}

bool StartsWith(const char* name, size_t length, const char* prefix) {
  const size_t size = strlen(prefix);
  return length >= size && strncmp(name, prefix, size) == 0;
}

}  // namespace

bool ParseEnabled(const char* value, Options* options) {
  const bool record = strcmp(value, "record") == 0;
  if (!record && strcmp(value, "0") != 0 && strcmp(value, "1") != 0) return false;
  options->enabled = value[0] != '0';
  options->record = record;
  return true;
}

bool ParseAlignment(const char* value, Options* options) {
  if (value[0] == '\0' || value[strspn(value, "0123456789")] != '\0' || strlen(value) > 5) return false;
  const uint64_t bytes = strtoull(value, nullptr, 10);
  if (bytes < 512 || bytes > 65536 || (bytes & (bytes - 1)) != 0) return false;
  options->alignment = bytes;
  return true;
}

bool ParseArena(const char* value, Options* options) {
  constexpr char kSized[] = "plain:";
  constexpr size_t kSizedLength = sizeof(kSized) - 1;
  if (strcmp(value, "auto") == 0 || strcmp(value, "vmm") == 0) {
    options->arena = value[0] == 'a' ? ArenaKind::kAutomatic : ArenaKind::kVirtual;
    return true;
  }
  const bool sized = strncmp(value, kSized, kSizedLength) == 0;
  const uint64_t bytes = sized ? Mebibytes(value + kSizedLength) : 0;
  if (sized ? bytes == 0 : strcmp(value, "plain") != 0) return false;
  options->arena = ArenaKind::kPlain;
  options->plain_arena_bytes = bytes;
  return true;
}

bool ParseDoctor(const char* value, Options*) { return value[0] != '\0'; }  // preload/hooks/doctor.cc reads it at load
bool ParseCupti(const char* value, Options* options) {
  if (strcmp(value, "all") == 0) {
    options->cupti = true;
    return true;
  }
  if (value[0] == '\0' || value[strspn(value, "0123456789")] != '\0' || strlen(value) > 9) return false;
  const uint64_t iterations = strtoull(value, nullptr, 10);
  options->cupti = iterations != 0;
  options->cupti_iterations = iterations;
  return iterations != 0;
}

// "none" is a pattern that no library's name matches.
bool ParseDriverCallers(const char* value, Options* options) {
  if (!IsPatternList(value[0] == '+' ? value + 1 : value)) return false;
  options->driver_callers = value;
  return true;
}

bool ParseExcept(const char* value, Options* options) {
  options->except = value;
  return true;
}

bool ParseFreeSync(const char* value, Options* options) {
  if (strcmp(value, "auto") != 0 && strcmp(value, "always") != 0) return false;
  options->free_sync_always = strcmp(value, "always") == 0;
  return true;
}

bool ParseHandle(const char* value, Options* options) {
  constexpr uint64_t kMaxHandle = uint64_t{64} << 30, kMaxPart = 1 << 20;
  char mebibytes[16];
  const size_t length = strcspn(value, ":");
  if (length >= sizeof(mebibytes)) return false;
  memcpy(mebibytes, value, length);
  mebibytes[length] = '\0';
  ExtentLimits extents;
  extents.bytes = Mebibytes(mebibytes);
  if (extents.bytes == 0 || extents.bytes > kMaxHandle || (extents.bytes & (extents.bytes - 1)) != 0) return false;
  if (value[length] == ':') {
    extents.share = Mebibytes(value + length + 1) >> 20;
    if (extents.share == 0 || extents.share > kMaxPart) return false;
  }
  options->extents = extents;
  return true;
}

bool ParseInterruptRange(const char* value, Options* options) {
  if (!IsPatternList(value)) return false;
  options->interrupt_range = value;
  return true;
}

bool ParseIpc(const char* value, Options* options) {
  if (value[strspn(value, "0123456789,")] != '\0' || value[strspn(value, "0,")] == '\0') return false;
  options->ipc_sizes = value;
  return true;
}

bool ParseIterationRange(const char* value, Options* options) {
  if (!IsPatternList(value)) return false;
  options->iteration_range = value;
  return true;
}

bool ParseLaunches(const char* value, Options* options) {
  if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) return false;
  options->launches = value[0] == '1';
  return true;
}

// For the Python package, which reads it (python/hotpack/_budget/planners.py).
bool ParseAlgorithm(const char* value, Options*) {
  for (const char* name : {"search", "chen", "echo", "dtr", "knapsack", "dqn", "memonger", "superneurons", "tflms"}) {
    if (strcmp(value, name) == 0) return true;
  }
  return false;
}

// For the Python package, which reads it (python/hotpack/_budget/amount.py).
bool ParseBudget(const char* value, Options*) {
  if (strcmp(value, "none") == 0 || strcmp(value, "0") == 0 || ParseSize(value) != 0) return true;
  constexpr char kActivations[] = "activations:";
  if (strncmp(value, kActivations, sizeof kActivations - 1) == 0) value += sizeof kActivations - 1;
  const size_t digits = strspn(value, "0123456789.");
  if (value[0] < '0' || value[0] > '9' || digits > 12 || strcmp(value + digits, "%") != 0) return false;
  char* end = nullptr;
  const double percent = strtod(value, &end);
  return end == value + digits && percent > 0 && percent <= 100;
}

bool ParseLimit(const char* value, Options* options) {
  const uint64_t bytes = ParseSize(value);
  if (bytes != 0) options->limit = bytes;
  return bytes != 0;
}

// For libhotpack_nvtx.so, which reads it.
bool ParseNvtxNext(const char*, Options*) { return true; }

bool ParseOnly(const char* value, Options* options) {
  options->only = value;
  return true;
}

bool ParsePlan(const char* value, Options* options) {
  options->plan = value;
  return true;
}

bool ParseReleaseEvents(const char* value, Options* options) {
  if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) return false;
  options->release_events = value[0] == '1';
  return true;
}

bool ParseStatsDir(const char* value, Options* options) {
  options->stats_dir = value;
  return true;
}

bool ParseTrace(const char* value, Options* options) {
  options->trace = value;
  return true;
}

bool ParseTraceLimit(const char* value, Options* options) {
  const uint64_t bytes = Mebibytes(value);
  if (bytes != 0) options->trace_limit = bytes;
  return bytes != 0;
}

bool ParseStreamEdges(const char* value, Options* options) {
  if (strcmp(value, "keep") == 0) {
    options->stream_edges = {.avoid = false};
    return true;
  }
  if (strcmp(value, "avoid") == 0) {
    options->stream_edges = {};
    return true;
  }
  constexpr char kPrefix[] = "avoid:";
  constexpr uint64_t kMost = 50;
  if (strncmp(value, kPrefix, sizeof kPrefix - 1) != 0) return false;
  const char* number = value + sizeof kPrefix - 1;
  char* end = nullptr;
  const unsigned long long percent = strtoull(number, &end, 10);
  if (number[0] < '0' || number[0] > '9' || *end != '\0' || percent > kMost) return false;
  options->stream_edges = {.slack_percent = static_cast<uint32_t>(percent)};
  return true;
}

bool ParsePageWait(const char* value, Options* options) {
  if (strcmp(value, "none") == 0) {
    options->page_wait_us = UINT64_MAX;
    return true;
  }
  const size_t digits = strspn(value, "0123456789");
  if (digits == 0 || digits > 9 || value[digits] != '\0') return false;
  options->page_wait_us = strtoull(value, nullptr, 10) * 1000;
  return true;
}

bool ParseEnvelope(const char* value, Options* options) {
  if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) return false;
  options->envelopes = value[0] == '1';
  return true;
}

bool ParsePeerCopies(const char* value, Options* options) {
  if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) return false;
  options->peer_copies = value[0] == '1';
  return true;
}

bool ParseWaitPlan(const char* value, Options* options) {
  if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) return false;
  options->wait_plan = value[0] == '1';
  return true;
}

bool IsKnownVariable(const char* name, size_t length) {
  for (const OptionRow& row : kOptionRows) {
    if (strlen(row.variable) == length && strncmp(row.variable, name, length) == 0) return true;
  }
  // Variables of the command, the build, the tests and Python (docs/environment.md).
  for (const char* other : {"HOTPACK_QUIET", "HOTPACK_SHARE", "HOTPACK_SHARED", "HOTPACK_BUILD_JOBS", "HOTPACK_BUILD",
                            "HOTPACK_HOME", "HOTPACK_TORCH_PYTHON", "HOTPACK_HIGHS_PYTHON", "HOTPACK_GRAPH",
                            "HOTPACK_GRAPH_STEP", "HOTPACK_GRAPH_GPU", "HOTPACK_NEED_STEPS", "HOTPACK_NEED_NOTES",
                            "HOTPACK_NEED_RANKS", "HOTPACK_RECOMPUTE", "HOTPACK_REPORT", "HOTPACK_STATE_AHEAD"}) {
    if (strlen(other) == length && strncmp(other, name, length) == 0) return true;
  }
  return StartsWith(name, length, "HOTPACK_TEST_");
}

const char* NearestVariable(const char* name, size_t length) {
  const char* nearest = nullptr;
  size_t least = 0;
  if (length > kLongest) return nullptr;
  for (const OptionRow& row : kOptionRows) {
    const size_t size = strlen(row.variable);
    if (size > kLongest) continue;
    const size_t distance = EditDistance(name, length, row.variable, size);
    if (nearest != nullptr && distance >= least) continue;
    nearest = row.variable;
    least = distance;
  }
  constexpr size_t kMeant = 3;
  return least <= kMeant ? nearest : nullptr;
}

bool MatchesPattern(const char* patterns, const char* text) {
  if (patterns == nullptr) return false;
  for (const char* begin = patterns;; ++begin) {
    const char* end = strchrnul(begin, ',');
    if (end != begin && Matches(begin, end, text)) return true;
    if (*end == '\0') return false;
    begin = end;
  }
}

bool MatchesName(const char* patterns, const char* path) {
  const char* slash = strrchr(path, '/');
  return MatchesPattern(patterns, slash != nullptr ? slash + 1 : path);
}

}  // namespace hotpack
