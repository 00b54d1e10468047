// Opens a CUDA runtime of NVIDIA's on the stub driver and calls cudaMalloc:  runtimes_client LIBCUDART
// The stub refuses cuInit, so the runtime gives up after its look-ups. Prints each look-up that it made: the name, the
// version, the flags, and whether the same look-up is answered by hotpack's hook, by the driver's function, or by none.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include "preload/hooks/hook_list.h"
#include "preload/hooks/work_list.h"
#include "tests/preload/stub_driver.h"

namespace {

using LookUp = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
LookUp look_up = nullptr;

bool IsHooked(const char* symbol) {
  static const std::set<std::string> hooked = {
#define HOTPACK_NAME(symbol, ...) #symbol,
      HOTPACK_HOOKS(HOTPACK_NAME) HOTPACK_WORK(HOTPACK_NAME)
#undef HOTPACK_NAME
  };
  return hooked.count(symbol) != 0;
}

void Visit(const char* base, int version, uint64_t flags, const char* symbol) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const bool found = look_up(base, &function, version, flags, &status) == CUDA_SUCCESS && function != nullptr;
  const char* answer = "none";
  if (found && symbol != nullptr) {
    answer = function == dlsym(RTLD_DEFAULT, symbol) && function != stub_real(symbol) ? "hook"
             : function == stub_real(symbol)                                          ? "driver"
                                                                                      : "other";
  }
  printf("%s %d %llu %s %s %s\n", base[0] != '\0' ? base : "-", version, static_cast<unsigned long long>(flags),
         symbol != nullptr ? symbol : "-", symbol != nullptr && IsHooked(symbol) ? "listed" : "unlisted", answer);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* library = dlopen(argv[1], RTLD_NOW);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 77;
  }
  // The stub is linked, so it is loaded before the runtime looks for it.
  stub_fail_init();
  const auto allocate = reinterpret_cast<int (*)(void**, size_t)>(dlsym(library, "cudaMalloc"));
  void* pointer = nullptr;
  if (allocate == nullptr || allocate(&pointer, 4096) == 0) return 1;
  look_up = reinterpret_cast<LookUp>(dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2"));
  if (look_up == nullptr) return 1;
  stub_each_lookup(Visit);
  return 0;
}
