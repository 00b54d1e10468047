// The program that startup_bench starts: without arguments it does nothing, with `cuda` it allocates device memory
// once.
#include <dlfcn.h>

#include <cstddef>
#include <cstring>

int main(int argc, char** argv) {
  if (argc < 2) return 0;
  if (std::strcmp(argv[1], "cuda") != 0) return 2;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return 3;
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto retain = reinterpret_cast<int (*)(void**, int)>(dlsym(driver, "cuDevicePrimaryCtxRetain"));
  const auto set = reinterpret_cast<int (*)(void*)>(dlsym(driver, "cuCtxSetCurrent"));
  const auto allocate = reinterpret_cast<int (*)(unsigned long long*, size_t)>(dlsym(driver, "cuMemAlloc_v2"));
  const auto release = reinterpret_cast<int (*)(unsigned long long)>(dlsym(driver, "cuMemFree_v2"));
  if (init == nullptr || retain == nullptr || set == nullptr || allocate == nullptr || release == nullptr) return 3;
  void* context = nullptr;
  unsigned long long address = 0;
  if (init(0) != 0 || retain(&context, 0) != 0 || set(context) != 0) return 3;
  if (allocate(&address, 1 << 20) != 0 || release(address) != 0) return 3;
  return 0;
}
