#include "simgpu/dnn/stubs.h"
#include "simgpu/dnn/stubs.inc"
