#include "simgpu/blas/stubs.h"

// Uses the macros of stubs.h.
#include "simgpu/blas/lt_stubs.inc"
