#include "preload/cupti/cupti_library.h"

#include <dlfcn.h>

#include <cstdio>

namespace hotpack::cupti {
namespace {

constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12"};
// Paths in toolkits, if the loader does not search there.
constexpr const char* kFiles[] = {
    "/usr/local/cuda/lib64/libcupti.so.13", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
    "/usr/local/cuda/lib64/libcupti.so.12", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12"};

void* Open() {
  for (const char* name : kNames) {
    if (void* handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) return handle;
  }
  for (const char* name : kNames) {
    if (void* handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL)) return handle;
  }
  for (const char* file : kFiles) {
    if (void* handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL)) return handle;
  }
  return nullptr;
}

// Returns the first missing function; null: none.
const char* Bind(void* handle, Library* library) {
#define HOTPACK_CUPTI_BIND(function)                                                     \
  library->function = reinterpret_cast<decltype(&::function)>(dlsym(handle, #function)); \
  if (library->function == nullptr) return #function;
  HOTPACK_CUPTI_FUNCTIONS(HOTPACK_CUPTI_BIND)
#undef HOTPACK_CUPTI_BIND
  library->cuptiSubscribe_v2 =
      reinterpret_cast<decltype(library->cuptiSubscribe_v2)>(dlsym(handle, "cuptiSubscribe_v2"));
  return nullptr;
}

}  // namespace

bool LoadLibrary(Library* library, char* why, size_t size) {
  void* handle = Open();
  if (handle == nullptr) {
    snprintf(why, size,
             "libcupti.so.13 cannot be loaded (it comes with the CUDA toolkit; LD_LIBRARY_PATH says where it is)");
    return false;
  }
  if (const char* missing = Bind(handle, library)) {
    snprintf(why, size, "this libcupti has no %s", missing);
    return false;
  }
  uint32_t version = 0;
  if (library->cuptiGetVersion(&version) != CUPTI_SUCCESS || version < kOldestVersion) {
    snprintf(why, size, "this libcupti is of version %u; %u (CUDA 12) is the oldest that will do", version,
             kOldestVersion);
    return false;
  }
  return true;
}

}  // namespace hotpack::cupti
