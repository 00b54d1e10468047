// Where the API's functions can be seen: by everyone in libcudart.so.13; only by the program or library that is linked
// with the archive in libcudart_static.a, as in the toolkit's, so that they never stand in for another library's
// runtime.
#pragma once

#ifdef SIMGPU_CUDART_STATIC
#define CUDART_VISIBLE __attribute__((visibility("hidden")))
#else
#define CUDART_VISIBLE __attribute__((visibility("default")))
#endif
