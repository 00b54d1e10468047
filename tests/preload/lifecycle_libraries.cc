// Libraries that come late: lifecycle_libraries deepbind | plugin. Not linked to the driver.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "runtime/include/hotpack.h"

namespace {

void* Open(const char* path, int flags) {
  void* library = dlopen(path, RTLD_NOW | flags);
  if (library == nullptr) fprintf(stderr, "%s\n", dlerror());
  return library;
}

int DeepBind() {
  void* library = Open(HOTPACK_TEST_DIR "/liblifecycle_deepbind.so", RTLD_DEEPBIND);
  if (library == nullptr) return 1;
  const auto allocate = reinterpret_cast<unsigned long long (*)()>(dlsym(library, "deepbind_allocate"));
  return allocate() != 0 ? 0 : 1;
}

// Memory by the driver through the preload, and by the plugin's own functions, in turn.
int Plugin() {
  void* driver = Open("libcuda.so.1", 0);
  void* plugin = Open(HOTPACK_C_LIBRARY, RTLD_LOCAL);
  if (driver == nullptr || plugin == nullptr) return 1;
  using Address = unsigned long long;
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto retain = reinterpret_cast<int (*)(void**, int)>(dlsym(driver, "cuDevicePrimaryCtxRetain"));
  const auto set_current = reinterpret_cast<int (*)(void*)>(dlsym(driver, "cuCtxSetCurrent"));
  const auto allocate = reinterpret_cast<int (*)(Address*, size_t)>(dlsym(driver, "cuMemAlloc_v2"));
  const auto release = reinterpret_cast<int (*)(Address)>(dlsym(driver, "cuMemFree_v2"));
  const auto set = reinterpret_cast<int (*)(Address, unsigned char, size_t)>(dlsym(driver, "cuMemsetD8_v2"));
  const auto plugin_malloc = reinterpret_cast<decltype(&hotpack_malloc)>(dlsym(plugin, "hotpack_malloc"));
  const auto plugin_free = reinterpret_cast<decltype(&hotpack_free)>(dlsym(plugin, "hotpack_free"));
  void* context = nullptr;
  if (init(0) != 0 || retain(&context, 0) != 0 || set_current(context) != 0) return 2;
  for (int i = 0; i < 100; ++i) {
    Address a = 0;
    void *b = nullptr, *c = nullptr;
    if (allocate(&a, 100'000) != 0 || plugin_malloc(&b, 200'000, nullptr) != 0) return 3;
    if (set(a, 1, 100'000) != 0 || set(reinterpret_cast<Address>(b), 2, 200'000) != 0) return 4;
    if (plugin_malloc(&c, 300'000, nullptr) != 0 || release(a) != 0) return 5;
    if (plugin_free(b, nullptr) != 0 || plugin_free(c, nullptr) != 0) return 6;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "deepbind") == 0) return DeepBind();
  if (argc > 1 && strcmp(argv[1], "plugin") == 0) return Plugin();
  return 7;
}
