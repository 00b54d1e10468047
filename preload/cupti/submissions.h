// The driver calls that put work on a device. CUPTI calls back at the entry of each, on the submitting thread, with the
// correlation id that the work's record will have.
//
// X(function, where its stream is)
//   STREAM   hStream of its parameters (generated_cuda_meta.h)
//   CONFIG   the CUlaunchConfig's
//   DEFAULT  the default stream
#pragma once

#include <cuda.h>
#include <cupti.h>  // generated_cuda_meta.h too

#include <cstdint>

#define HOTPACK_CUPTI_BOTH(X, function, where) X(function, where) X(function##_ptsz, where)
#define HOTPACK_CUPTI_SYNC(X, function) X(function, DEFAULT) X(function##_ptds, DEFAULT)

#define HOTPACK_CUPTI_SUBMISSIONS_12(X)                    \
  HOTPACK_CUPTI_BOTH(X, cuLaunchKernel, STREAM)            \
  HOTPACK_CUPTI_BOTH(X, cuLaunchKernelEx, CONFIG)          \
  HOTPACK_CUPTI_BOTH(X, cuLaunchCooperativeKernel, STREAM) \
  HOTPACK_CUPTI_BOTH(X, cuGraphLaunch, STREAM)             \
  HOTPACK_CUPTI_SYNC(X, cuMemcpy)                          \
  HOTPACK_CUPTI_SYNC(X, cuMemcpyHtoD_v2)                   \
  HOTPACK_CUPTI_SYNC(X, cuMemcpyDtoH_v2)                   \
  HOTPACK_CUPTI_SYNC(X, cuMemcpyDtoD_v2)                   \
  HOTPACK_CUPTI_SYNC(X, cuMemcpy2D_v2)                     \
  HOTPACK_CUPTI_SYNC(X, cuMemcpy2DUnaligned_v2)            \
  HOTPACK_CUPTI_SYNC(X, cuMemcpy3D_v2)                     \
  HOTPACK_CUPTI_SYNC(X, cuMemcpyPeer)                      \
  HOTPACK_CUPTI_SYNC(X, cuMemcpy3DPeer)                    \
  HOTPACK_CUPTI_BOTH(X, cuMemcpyAsync, STREAM)             \
  HOTPACK_CUPTI_BOTH(X, cuMemcpyHtoDAsync_v2, STREAM)      \
  HOTPACK_CUPTI_BOTH(X, cuMemcpyDtoHAsync_v2, STREAM)      \
  HOTPACK_CUPTI_BOTH(X, cuMemcpyDtoDAsync_v2, STREAM)      \
  HOTPACK_CUPTI_BOTH(X, cuMemcpy2DAsync_v2, STREAM)        \
  HOTPACK_CUPTI_BOTH(X, cuMemcpy3DAsync_v2, STREAM)        \
  HOTPACK_CUPTI_BOTH(X, cuMemcpyPeerAsync, STREAM)         \
  HOTPACK_CUPTI_BOTH(X, cuMemcpy3DPeerAsync, STREAM)       \
  HOTPACK_CUPTI_SYNC(X, cuMemsetD8_v2)                     \
  HOTPACK_CUPTI_SYNC(X, cuMemsetD16_v2)                    \
  HOTPACK_CUPTI_SYNC(X, cuMemsetD32_v2)                    \
  HOTPACK_CUPTI_SYNC(X, cuMemsetD2D8_v2)                   \
  HOTPACK_CUPTI_SYNC(X, cuMemsetD2D16_v2)                  \
  HOTPACK_CUPTI_SYNC(X, cuMemsetD2D32_v2)                  \
  HOTPACK_CUPTI_BOTH(X, cuMemsetD8Async, STREAM)           \
  HOTPACK_CUPTI_BOTH(X, cuMemsetD16Async, STREAM)          \
  HOTPACK_CUPTI_BOTH(X, cuMemsetD32Async, STREAM)          \
  HOTPACK_CUPTI_BOTH(X, cuMemsetD2D8Async, STREAM)         \
  HOTPACK_CUPTI_BOTH(X, cuMemsetD2D16Async, STREAM)        \
  HOTPACK_CUPTI_BOTH(X, cuMemsetD2D32Async, STREAM)

// Of CUDA 13. An older libcupti refuses to watch them; that error is ignored.
#if CUPTI_API_VERSION >= 130000
#define HOTPACK_CUPTI_SUBMISSIONS_13(X)                \
  HOTPACK_CUPTI_BOTH(X, cuMemcpyBatchAsync_v2, STREAM) \
  HOTPACK_CUPTI_BOTH(X, cuMemcpy3DBatchAsync_v2, STREAM)
#else
#define HOTPACK_CUPTI_SUBMISSIONS_13(X)
#endif

#define HOTPACK_CUPTI_SUBMISSIONS(X) HOTPACK_CUPTI_SUBMISSIONS_12(X) HOTPACK_CUPTI_SUBMISSIONS_13(X)

namespace hotpack::cupti {

inline constexpr CUpti_CallbackId kSubmissions[] = {
#define HOTPACK_CUPTI_ID(function, where) CUPTI_DRIVER_TRACE_CBID_##function,
    HOTPACK_CUPTI_SUBMISSIONS(HOTPACK_CUPTI_ID)
#undef HOTPACK_CUPTI_ID
};

struct Submission {
  CUstream stream = nullptr;
  bool per_thread = false;     // a null stream is the calling thread's own default stream
  bool kernel = false;         // CUpti_CallbackData::symbolName names a kernel; meaningless for other calls
  const char* name = nullptr;  // of work other than kernels, if the function alone determines it
};

// Returns the submitted work and its stream. `parameters`: CUpti_CallbackData::functionParams of that call.
Submission SubmissionOf(CUpti_CallbackId call, const void* parameters);

}  // namespace hotpack::cupti
