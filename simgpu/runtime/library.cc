// Libraries: device code that the program loads itself. A cudaLibrary_t and a cudaKernel_t are the driver's.
#include "simgpu/runtime/runtime.h"

using namespace simgpu_runtime;

// Does not pass on options of the just-in-time compiler, because nothing is compiled.
CUDART_API cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**, unsigned,
                               cudaLibraryOption*, void**, unsigned) {
  CUDART_READY();
  return Set(
      drv.cuLibraryLoadData(reinterpret_cast<CUlibrary*>(library), code, nullptr, nullptr, 0, nullptr, nullptr, 0));
}

CUDART_API cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, cudaJitOption*, void**, unsigned,
                                   cudaLibraryOption*, void**, unsigned) {
  CUDART_READY();
  return Set(
      drv.cuLibraryLoadFromFile(reinterpret_cast<CUlibrary*>(library), path, nullptr, nullptr, 0, nullptr, nullptr, 0));
}

CUDART_FORWARD(cudaLibraryUnload, cuLibraryUnload, (cudaLibrary_t library), (reinterpret_cast<CUlibrary>(library)))
CUDART_FORWARD(cudaLibraryGetKernel, cuLibraryGetKernel,
               (cudaKernel_t * kernel, cudaLibrary_t library, const char* name),
               (reinterpret_cast<CUkernel*>(kernel), reinterpret_cast<CUlibrary>(library), name))
CUDART_FORWARD(cudaLibraryGetGlobal, cuLibraryGetGlobal,
               (void** address, size_t* bytes, cudaLibrary_t library, const char* name),
               (reinterpret_cast<CUdeviceptr*>(address), bytes, reinterpret_cast<CUlibrary>(library), name))
CUDART_FORWARD(cudaLibraryGetKernelCount, cuLibraryGetKernelCount, (unsigned* count, cudaLibrary_t library),
               (count, reinterpret_cast<CUlibrary>(library)))
CUDART_FORWARD(cudaLibraryEnumerateKernels, cuLibraryEnumerateKernels,
               (cudaKernel_t * kernels, unsigned count, cudaLibrary_t library),
               (reinterpret_cast<CUkernel*>(kernels), count, reinterpret_cast<CUlibrary>(library)))
