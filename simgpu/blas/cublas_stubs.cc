#include "simgpu/blas/stubs.h"

// Uses the macros of stubs.h.
#include "simgpu/blas/cublas_stubs.inc"
