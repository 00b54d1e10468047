#include "simgpu/blas/lt_stubs.inc"

#include "simgpu/blas/stubs.h"
