#include "simgpu/blas/stubs.h"
#include "simgpu/blas/lt_stubs.inc"
