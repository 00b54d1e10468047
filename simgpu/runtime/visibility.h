// The visibility of the API's functions. In libcudart.so.13: everywhere. In libcudart_static.a: only in the program or
// library that links the archive, as in the toolkit's, so that they never replace another library's runtime.
#pragma once

#ifdef SIMGPU_CUDART_STATIC
#define CUDART_VISIBLE __attribute__((visibility("hidden")))
#else
#define CUDART_VISIBLE __attribute__((visibility("default")))
#endif
