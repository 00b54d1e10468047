// Entry points known by name only: CUBLAS_STATUS_NOT_SUPPORTED. No CUDA header, because the parameters do not matter.
#pragma once

#define SIMGPU_BLAS_STUB(name) \
  extern "C" int name();       \
  extern "C" int name() { return 15 /* not supported */; }
