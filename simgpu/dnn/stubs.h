// Entry points known by name only: CUDNN_STATUS_NOT_SUPPORTED. No CUDA header, because the parameters do not matter.
#pragma once

#define SIMGPU_DNN_STUB(name) \
  extern "C" int name();      \
  extern "C" int name() { return 3000 /* not supported */; }
