// For the programs of nvcc: a call that must succeed, and what must hold. Both end the program with status 3.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                               \
  do {                                                                                            \
    const cudaError_t check_error = (call);                                                       \
    if (check_error != cudaSuccess) {                                                             \
      fprintf(stderr, "line %d: %s gave %s\n", __LINE__, #call, cudaGetErrorString(check_error)); \
      exit(3);                                                                                    \
    }                                                                                             \
  } while (false)

#define EXPECT(condition)                                         \
  do {                                                            \
    if (!(condition)) {                                           \
      fprintf(stderr, "line %d: not %s\n", __LINE__, #condition); \
      exit(3);                                                    \
    }                                                             \
  } while (false)
