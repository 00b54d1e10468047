#include "simgpu/blas/stubs.h"
#include "simgpu/blas/cublas_stubs.inc"
