#include "simgpu/blas/cublas_stubs.inc"

#include "simgpu/blas/stubs.h"
