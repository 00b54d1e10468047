// The host side of the kernels for a program without cudart. So compiled, launch.h finds them in the program's module.
#include "bench/train/kernels.cu"
