#include "preload/process/debug_tools.h"

#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "preload/process/elf_symbols.h"

namespace hotpack {
namespace {

constexpr char kSanitizer[] = "compute-sanitizer";

// compute-sanitizer, and tools made with its interface, inject one of these. cuInit may load them.
bool HasSanitizerLibrary(const char* path) {
  return strstr(path, "libsanitizer-collection") != nullptr || strstr(path, "libsanitizer-public") != nullptr;
}

bool Set(const char* variable) {
  const char* value = getenv(variable);
  return value != nullptr && value[0] != '\0';
}

}  // namespace

const char* DetectInProcess() {
  // Variables that compute-sanitizer sets for its target; CUDA_MEMCHECK is its predecessor's.
  if (Set("NV_SANITIZER_INJECTION_PORT_BASE") || Set("NV_SANITIZER_INJECTION_PORT_RANGE_BEGIN")) return kSanitizer;
  if (Set("CUDA_MEMCHECK")) return "cuda-memcheck";
  const char* injected = getenv("CUDA_INJECTION64_PATH");
  if (injected != nullptr && HasSanitizerLibrary(injected)) return kSanitizer;
  const int found =
      dl_iterate_phdr([](dl_phdr_info* info, size_t,
                         void*) { return info->dlpi_name != nullptr && HasSanitizerLibrary(info->dlpi_name) ? 1 : 0; },
                      nullptr);
  return found != 0 ? kSanitizer : nullptr;
}

const char* DetectAtDriver(void* driver) {
  if (const char* tool = DetectInProcess()) return tool;
  // cudadebugger.h, CUDBG_IPC_FLAG_NAME: "set by the API client to indicate that it is ready to attach".
  const auto* flag = driver != nullptr ? static_cast<const uint32_t*>(RealDlsym()(driver, "cudbgIpcFlag")) : nullptr;
  return flag != nullptr && *static_cast<const volatile uint32_t*>(flag) != 0 ? "cuda-gdb" : nullptr;
}

}  // namespace hotpack
