// The few driver functions of simulate_driver_client, by each way to them.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/preload/driver_function.h"

#define OK(call)                                           \
  do {                                                     \
    if ((call) != CUDA_SUCCESS) {                          \
      fprintf(stderr, "%d: %s failed\n", __LINE__, #call); \
      exit(3);                                             \
    }                                                      \
  } while (false)

// X(member, exported symbol, base name, version)
#define SIMULATE_FUNCTIONS(X)                                           \
  X(Init, cuInit, "cuInit", 2000)                                       \
  X(Retain, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000) \
  X(SetCurrent, cuCtxSetCurrent, "cuCtxSetCurrent", 4000)               \
  X(Alloc, cuMemAlloc_v2, "cuMemAlloc", 3020)                           \
  X(Free, cuMemFree_v2, "cuMemFree", 3020)                              \
  X(StreamCreate, cuStreamCreate, "cuStreamCreate", 2000)               \
  X(Memset, cuMemsetD8Async, "cuMemsetD8Async", 3020)

struct SimulateApi {
#define SIMULATE_MEMBER(member, symbol, base, version) decltype(&::symbol) member = nullptr;
  SIMULATE_FUNCTIONS(SIMULATE_MEMBER)
#undef SIMULATE_MEMBER
};

inline SimulateApi GetSimulateApi(const char* way) {
  SimulateApi api;
  const bool link = strcmp(way, "link") == 0;
#define SIMULATE_GET(member, symbol, base, version)                                                              \
  api.member =                                                                                                   \
      link ? &::symbol : reinterpret_cast<decltype(&::symbol)>(FindDriverFunction(way, #symbol, base, version)); \
  if (api.member == nullptr) exit(4);
  SIMULATE_FUNCTIONS(SIMULATE_GET)
#undef SIMULATE_GET
  return api;
}
