#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simgpu/driver/api.h"
#include "simgpu/driver/module.h"
#include "simgpu/driver/work.h"

namespace simgpu {
namespace {

constexpr uint64_t kDefaultMemory = uint64_t{16} << 30;

// Parses "16G": a number followed by K, M, G or T (powers of 1024). 0: malformed.
uint64_t ParseBytes(const char* text) {
  char* end = nullptr;
  const double number = strtod(text, &end);
  uint64_t unit = 1;
  switch (*end) {
    case 'T':
    case 't':
      unit <<= 10;
      [[fallthrough]];
    case 'G':
    case 'g':
      unit <<= 10;
      [[fallthrough]];
    case 'M':
    case 'm':
      unit <<= 10;
      [[fallthrough]];
    case 'K':
    case 'k':
      unit <<= 10;
      ++end;
      break;
    default:
      break;
  }
  if (*end == 'i') ++end;
  if (*end == 'B' || *end == 'b') ++end;
  if (*end != '\0' || !(number > 0) || number * static_cast<double>(unit) > 1e15) return 0;
  return static_cast<uint64_t>(number * static_cast<double>(unit));
}

[[noreturn]] void BadSetting(const char* name, const char* value, const char* wanted) {
  fprintf(stderr, "simgpu: %s: '%s' is not %s\n", name, value, wanted);
  _exit(2);
}

uint64_t MemorySetting() {
  const char* text = getenv("SIMGPU_MEMORY");
  if (text == nullptr || *text == '\0') return kDefaultMemory;
  const uint64_t bytes = ParseBytes(text) / kPage * kPage;
  if (bytes == 0) BadSetting("SIMGPU_MEMORY", text, "a size of at least 2M, such as 16G");
  return bytes;
}

int DeviceSetting() {
  const char* text = getenv("SIMGPU_DEVICES");
  if (text == nullptr || *text == '\0') return 1;
  char* end = nullptr;
  const long count = strtol(text, &end, 10);
  if (*end != '\0' || count < 0 || count > 64) BadSetting("SIMGPU_DEVICES", text, "a number from 0 to 64");
  return static_cast<int>(count);
}

bool CheckSetting() {
  const char* text = getenv("SIMGPU_CHECK");
  return text == nullptr || strcmp(text, "0") != 0;
}

// On unless it is 0.
bool Switch(const char* name) {
  const char* text = getenv(name);
  if (text == nullptr || *text == '\0' || strcmp(text, "1") == 0) return true;
  if (strcmp(text, "0") != 0) BadSetting(name, text, "0 or 1");
  return false;
}

ContextRule ContextSetting() {
  const char* text = getenv("SIMGPU_CONTEXTS");
  if (text == nullptr || *text == '\0' || strcmp(text, "1") == 0) return ContextRule::kDocumented;
  if (strcmp(text, "0") == 0) return ContextRule::kNone;
  if (strcmp(text, "strict") != 0) BadSetting("SIMGPU_CONTEXTS", text, "0, 1 or strict");
  return ContextRule::kStrict;
}

CaptureRule CaptureSetting() {
  const char* text = getenv("SIMGPU_CAPTURES");
  if (text == nullptr || *text == '\0' || strcmp(text, "1") == 0) return CaptureRule::kDocumented;
  if (strcmp(text, "0") == 0) return CaptureRule::kLenient;
  if (strcmp(text, "strict") != 0) BadSetting("SIMGPU_CAPTURES", text, "0, 1 or strict");
  return CaptureRule::kStrict;
}

// SIMGPU_VALUES is `value`.
bool ValuesAre(const char* value) {
  const char* text = getenv("SIMGPU_VALUES");
  if (text == nullptr || *text == '\0') text = "forget";
  if (strcmp(text, "forget") != 0 && strcmp(text, "keep") != 0 && strcmp(text, "small") != 0) {
    BadSetting("SIMGPU_VALUES", text, "forget, keep or small");
  }
  return strcmp(text, value) == 0;
}

}  // namespace

Driver::Driver()
    : devices(DeviceSetting()),
      keep_values(ValuesAre("keep")),
      drop_large(ValuesAre("small")),
      peers(Switch("SIMGPU_PEERS")),
      check_access(Switch("SIMGPU_ACCESS")),
      context_rule(ContextSetting()),
      capture_rule(CaptureSetting()),
      checker(&order, &memory, CheckSetting()) {
  const uint64_t capacity = MemorySetting();
  for (size_t i = 0; i < devices.size(); ++i) {
    Device& device = devices[i];
    device.ordinal = static_cast<int>(i);
    device.physical.capacity = capacity;
    device.default_pool.device = device.ordinal;
    device.default_pool.is_default = true;
    device.pool = &device.default_pool;
    pools.insert(&device.default_pool);
  }
}

Driver::~Driver() = default;

Driver& TheDriver() {
  static Driver* driver = new Driver;
  return *driver;
}

SIMGPU_API cuInit(unsigned flags) {
  SIMGPU_ENTER_ANYTIME(cuInit);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (TheDriver().devices.empty()) return CUDA_ERROR_NO_DEVICE;
  SetInitialized();
  return CUDA_SUCCESS;
}

SIMGPU_API cuDriverGetVersion(int* version) {
  SIMGPU_ENTER_ANYTIME(cuDriverGetVersion);
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = 13000;
  return CUDA_SUCCESS;
}

}  // namespace simgpu
