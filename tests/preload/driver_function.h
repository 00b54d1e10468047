// A driver function of the simulated device, by each way to it.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <cstring>

// `way`: dlsym (on a handle), default (RTLD_DEFAULT), proc (cuGetProcAddress_v2). Null if it is not found.
inline void* FindDriverFunction(const char* way, const char* symbol, const char* base, int version) {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY);
  void* found = nullptr;
  if (strcmp(way, "dlsym") == 0) found = dlsym(library, symbol);
  if (strcmp(way, "default") == 0) found = dlsym(RTLD_DEFAULT, symbol);
  if (strcmp(way, "proc") == 0) {
    using LookUp = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
    const auto look_up = reinterpret_cast<LookUp>(dlsym(library, "cuGetProcAddress_v2"));
    if (look_up == nullptr || look_up(base, &found, version, 0, nullptr) != CUDA_SUCCESS) return nullptr;
  }
  return found;
}
