// Driver functions that submit work to a stream and may do so to a per-thread default stream, of which the program tells
// the driver nothing: no cuStreamCreate comes before. Their hooks (work_hooks.cc) note the first such use and go on.
//
// X(exported symbol, base name, version, default stream: 1 legacy, 2 per thread, where the stream is)
//   PER_THREAD   stream 0 means the per-thread default stream: every call counts
//   ARG<n>       the n-th parameter, from 1: counts when it is CU_STREAM_PER_THREAD
//   CONFIG       the first parameter points to a CUlaunchConfig
// Signatures: cuda.h, both the public part and the one behind CUDA_FORCE_API_VERSION for the older generations.
#pragma once

#define HOTPACK_WORK(X) \
  X(cuMemPrefetchAsync_ptsz, "cuMemPrefetchAsync", 8000, 2, PER_THREAD)                                 \
  X(cuMemPrefetchAsync, "cuMemPrefetchAsync", 8000, 1, ARG4)                                            \
  X(cuMemPrefetchAsync_v2_ptsz, "cuMemPrefetchAsync", 12020, 2, PER_THREAD)                             \
  X(cuMemPrefetchAsync_v2, "cuMemPrefetchAsync", 12020, 1, ARG5)                                        \
  X(cuMemPrefetchBatchAsync_ptsz, "cuMemPrefetchBatchAsync", 13000, 2, PER_THREAD)                      \
  X(cuMemPrefetchBatchAsync, "cuMemPrefetchBatchAsync", 13000, 1, ARG8)                                 \
  X(cuMemDiscardBatchAsync_ptsz, "cuMemDiscardBatchAsync", 13000, 2, PER_THREAD)                        \
  X(cuMemDiscardBatchAsync, "cuMemDiscardBatchAsync", 13000, 1, ARG5)                                   \
  X(cuMemDiscardAndPrefetchBatchAsync_ptsz, "cuMemDiscardAndPrefetchBatchAsync", 13000, 2, PER_THREAD)  \
  X(cuMemDiscardAndPrefetchBatchAsync, "cuMemDiscardAndPrefetchBatchAsync", 13000, 1, ARG8)             \
  X(cuMemcpyHtoD_v2_ptds, "cuMemcpyHtoD", 7000, 2, PER_THREAD)                                          \
  X(cuMemcpyDtoH_v2_ptds, "cuMemcpyDtoH", 7000, 2, PER_THREAD)                                          \
  X(cuMemcpyDtoD_v2_ptds, "cuMemcpyDtoD", 7000, 2, PER_THREAD)                                          \
  X(cuMemcpyDtoA_v2_ptds, "cuMemcpyDtoA", 7000, 2, PER_THREAD)                                          \
  X(cuMemcpyAtoD_v2_ptds, "cuMemcpyAtoD", 7000, 2, PER_THREAD)                                          \
  X(cuMemcpyHtoAAsync_v2_ptsz, "cuMemcpyHtoAAsync", 7000, 2, PER_THREAD)                                \
  X(cuMemcpyHtoAAsync_v2, "cuMemcpyHtoAAsync", 3020, 1, ARG5)                                           \
  X(cuMemcpyAtoHAsync_v2_ptsz, "cuMemcpyAtoHAsync", 7000, 2, PER_THREAD)                                \
  X(cuMemcpyAtoHAsync_v2, "cuMemcpyAtoHAsync", 3020, 1, ARG5)                                           \
  X(cuMemcpy2D_v2_ptds, "cuMemcpy2D", 7000, 2, PER_THREAD)                                              \
  X(cuMemcpy2DUnaligned_v2_ptds, "cuMemcpy2DUnaligned", 7000, 2, PER_THREAD)                            \
  X(cuMemcpy3D_v2_ptds, "cuMemcpy3D", 7000, 2, PER_THREAD)                                              \
  X(cuMemcpyHtoDAsync_v2_ptsz, "cuMemcpyHtoDAsync", 7000, 2, PER_THREAD)                                \
  X(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", 3020, 1, ARG4)                                           \
  X(cuMemcpyDtoHAsync_v2_ptsz, "cuMemcpyDtoHAsync", 7000, 2, PER_THREAD)                                \
  X(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", 3020, 1, ARG4)                                           \
  X(cuMemcpyDtoDAsync_v2_ptsz, "cuMemcpyDtoDAsync", 7000, 2, PER_THREAD)                                \
  X(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync", 3020, 1, ARG4)                                           \
  X(cuMemcpy2DAsync_v2_ptsz, "cuMemcpy2DAsync", 7000, 2, PER_THREAD)                                    \
  X(cuMemcpy2DAsync_v2, "cuMemcpy2DAsync", 3020, 1, ARG2)                                               \
  X(cuMemcpy3DAsync_v2_ptsz, "cuMemcpy3DAsync", 7000, 2, PER_THREAD)                                    \
  X(cuMemcpy3DAsync_v2, "cuMemcpy3DAsync", 3020, 1, ARG2)                                               \
  X(cuMemcpyBatchAsync_ptsz, "cuMemcpyBatchAsync", 12080, 2, PER_THREAD)                                \
  X(cuMemcpyBatchAsync, "cuMemcpyBatchAsync", 12080, 1, ARG9)                                           \
  X(cuMemcpyBatchAsync_v2_ptsz, "cuMemcpyBatchAsync", 13000, 2, PER_THREAD)                             \
  X(cuMemcpyBatchAsync_v2, "cuMemcpyBatchAsync", 13000, 1, ARG8)                                        \
  X(cuMemcpy3DBatchAsync_ptsz, "cuMemcpy3DBatchAsync", 12080, 2, PER_THREAD)                            \
  X(cuMemcpy3DBatchAsync, "cuMemcpy3DBatchAsync", 12080, 1, ARG5)                                       \
  X(cuMemcpy3DBatchAsync_v2_ptsz, "cuMemcpy3DBatchAsync", 13000, 2, PER_THREAD)                         \
  X(cuMemcpy3DBatchAsync_v2, "cuMemcpy3DBatchAsync", 13000, 1, ARG4)                                    \
  X(cuMemsetD8_v2_ptds, "cuMemsetD8", 7000, 2, PER_THREAD)                                              \
  X(cuMemsetD16_v2_ptds, "cuMemsetD16", 7000, 2, PER_THREAD)                                            \
  X(cuMemsetD32_v2_ptds, "cuMemsetD32", 7000, 2, PER_THREAD)                                            \
  X(cuMemsetD2D8_v2_ptds, "cuMemsetD2D8", 7000, 2, PER_THREAD)                                          \
  X(cuMemsetD2D16_v2_ptds, "cuMemsetD2D16", 7000, 2, PER_THREAD)                                        \
  X(cuMemsetD2D32_v2_ptds, "cuMemsetD2D32", 7000, 2, PER_THREAD)                                        \
  X(cuStreamWriteValue32_ptsz, "cuStreamWriteValue32", 8000, 2, PER_THREAD)                             \
  X(cuStreamWriteValue32, "cuStreamWriteValue32", 8000, 1, ARG1)                                        \
  X(cuStreamWriteValue32_v2_ptsz, "cuStreamWriteValue32", 11070, 2, PER_THREAD)                         \
  X(cuStreamWriteValue32_v2, "cuStreamWriteValue32", 11070, 1, ARG1)                                    \
  X(cuStreamWaitValue32_ptsz, "cuStreamWaitValue32", 8000, 2, PER_THREAD)                               \
  X(cuStreamWaitValue32, "cuStreamWaitValue32", 8000, 1, ARG1)                                          \
  X(cuStreamWaitValue32_v2_ptsz, "cuStreamWaitValue32", 11070, 2, PER_THREAD)                           \
  X(cuStreamWaitValue32_v2, "cuStreamWaitValue32", 11070, 1, ARG1)                                      \
  X(cuStreamWriteValue64_ptsz, "cuStreamWriteValue64", 9000, 2, PER_THREAD)                             \
  X(cuStreamWriteValue64, "cuStreamWriteValue64", 9000, 1, ARG1)                                        \
  X(cuStreamWriteValue64_v2_ptsz, "cuStreamWriteValue64", 11070, 2, PER_THREAD)                         \
  X(cuStreamWriteValue64_v2, "cuStreamWriteValue64", 11070, 1, ARG1)                                    \
  X(cuStreamWaitValue64_ptsz, "cuStreamWaitValue64", 9000, 2, PER_THREAD)                               \
  X(cuStreamWaitValue64, "cuStreamWaitValue64", 9000, 1, ARG1)                                          \
  X(cuStreamWaitValue64_v2_ptsz, "cuStreamWaitValue64", 11070, 2, PER_THREAD)                           \
  X(cuStreamWaitValue64_v2, "cuStreamWaitValue64", 11070, 1, ARG1)                                      \
  X(cuStreamBatchMemOp_ptsz, "cuStreamBatchMemOp", 8000, 2, PER_THREAD)                                 \
  X(cuStreamBatchMemOp, "cuStreamBatchMemOp", 8000, 1, ARG1)                                            \
  X(cuStreamBatchMemOp_v2_ptsz, "cuStreamBatchMemOp", 11070, 2, PER_THREAD)                             \
  X(cuStreamBatchMemOp_v2, "cuStreamBatchMemOp", 11070, 1, ARG1)                                        \
  X(cuMemcpy_ptds, "cuMemcpy", 7000, 2, PER_THREAD)                                                     \
  X(cuMemcpyAsync_ptsz, "cuMemcpyAsync", 7000, 2, PER_THREAD)                                           \
  X(cuMemcpyAsync, "cuMemcpyAsync", 4000, 1, ARG4)                                                      \
  X(cuMemcpyPeer_ptds, "cuMemcpyPeer", 7000, 2, PER_THREAD)                                             \
  X(cuMemcpyPeerAsync_ptsz, "cuMemcpyPeerAsync", 7000, 2, PER_THREAD)                                   \
  X(cuMemcpyPeerAsync, "cuMemcpyPeerAsync", 4000, 1, ARG6)                                              \
  X(cuMemcpy3DPeer_ptds, "cuMemcpy3DPeer", 7000, 2, PER_THREAD)                                         \
  X(cuMemcpy3DPeerAsync_ptsz, "cuMemcpy3DPeerAsync", 7000, 2, PER_THREAD)                               \
  X(cuMemcpy3DPeerAsync, "cuMemcpy3DPeerAsync", 4000, 1, ARG2)                                          \
  X(cuMemsetD8Async_ptsz, "cuMemsetD8Async", 7000, 2, PER_THREAD)                                       \
  X(cuMemsetD8Async, "cuMemsetD8Async", 3020, 1, ARG4)                                                  \
  X(cuMemsetD16Async_ptsz, "cuMemsetD16Async", 7000, 2, PER_THREAD)                                     \
  X(cuMemsetD16Async, "cuMemsetD16Async", 3020, 1, ARG4)                                                \
  X(cuMemsetD32Async_ptsz, "cuMemsetD32Async", 7000, 2, PER_THREAD)                                     \
  X(cuMemsetD32Async, "cuMemsetD32Async", 3020, 1, ARG4)                                                \
  X(cuMemsetD2D8Async_ptsz, "cuMemsetD2D8Async", 7000, 2, PER_THREAD)                                   \
  X(cuMemsetD2D8Async, "cuMemsetD2D8Async", 3020, 1, ARG6)                                              \
  X(cuMemsetD2D16Async_ptsz, "cuMemsetD2D16Async", 7000, 2, PER_THREAD)                                 \
  X(cuMemsetD2D16Async, "cuMemsetD2D16Async", 3020, 1, ARG6)                                            \
  X(cuMemsetD2D32Async_ptsz, "cuMemsetD2D32Async", 7000, 2, PER_THREAD)                                 \
  X(cuMemsetD2D32Async, "cuMemsetD2D32Async", 3020, 1, ARG6)                                            \
  X(cuLaunchKernel_ptsz, "cuLaunchKernel", 7000, 2, PER_THREAD)                                         \
  X(cuLaunchKernel, "cuLaunchKernel", 4000, 1, ARG9)                                                    \
  X(cuLaunchKernelEx_ptsz, "cuLaunchKernelEx", 11060, 2, PER_THREAD)                                    \
  X(cuLaunchKernelEx, "cuLaunchKernelEx", 11060, 1, CONFIG)                                             \
  X(cuLaunchHostFunc_ptsz, "cuLaunchHostFunc", 10000, 2, PER_THREAD)                                    \
  X(cuLaunchHostFunc, "cuLaunchHostFunc", 10000, 1, ARG1)                                               \
  X(cuLaunchCooperativeKernel_ptsz, "cuLaunchCooperativeKernel", 9000, 2, PER_THREAD)                   \
  X(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel", 9000, 1, ARG9)                              \
  X(cuGraphLaunch_ptsz, "cuGraphLaunch", 10000, 2, PER_THREAD)                                          \
  X(cuGraphLaunch, "cuGraphLaunch", 10000, 1, ARG2)                                                     \
  X(cuMemBatchDecompressAsync_ptsz, "cuMemBatchDecompressAsync", 12060, 2, PER_THREAD)                  \
  X(cuMemBatchDecompressAsync, "cuMemBatchDecompressAsync", 12060, 1, ARG5)
