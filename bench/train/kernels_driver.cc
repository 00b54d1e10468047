// The host side of the kernels for a program without cudart: launch.h, compiled so, finds them in the program's module.
#include "bench/train/kernels.cu"
