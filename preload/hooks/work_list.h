// Driver functions that submit work to a stream. Their hooks (work_hooks.cc) note the first use of each stream before
// the work is submitted, and pass through.
//
// X(exported symbol, base name, version, default stream: 1 legacy, 2 per thread, where the stream is)
//   ARG<n>           the n-th parameter, from 1; 0 is the legacy default stream
//   CONFIG           the first parameter points to a CUlaunchConfig
//   HOST_ARG<n>      the n-th parameter; the work may wait for the host, or for another process or API
//   OWN_...          the same, but 0 is the calling thread's default stream
//   NONE             none: the legacy default stream, whose use needs no note. Listed for the launch collector
//   PER_THREAD       always the calling thread's default stream
// Signatures: cuda.h, both the public part and the one behind CUDA_FORCE_API_VERSION for the older generations.
#pragma once

#define HOTPACK_WORK(X)                                                                              \
  X(cuMemcpy, "cuMemcpy", 4000, 1, NONE)                                                             \
  X(cuMemcpyPeer, "cuMemcpyPeer", 4000, 1, NONE)                                                     \
  X(cuMemcpy3DPeer, "cuMemcpy3DPeer", 4000, 1, NONE)                                                 \
  X(cuMemcpyHtoD_v2, "cuMemcpyHtoD", 3020, 1, NONE)                                                  \
  X(cuMemcpyDtoH_v2, "cuMemcpyDtoH", 3020, 1, NONE)                                                  \
  X(cuMemcpyDtoD_v2, "cuMemcpyDtoD", 3020, 1, NONE)                                                  \
  X(cuMemcpy2D_v2, "cuMemcpy2D", 3020, 1, NONE)                                                      \
  X(cuMemcpy2DUnaligned_v2, "cuMemcpy2DUnaligned", 3020, 1, NONE)                                    \
  X(cuMemcpy3D_v2, "cuMemcpy3D", 3020, 1, NONE)                                                      \
  X(cuMemsetD8_v2, "cuMemsetD8", 3020, 1, NONE)                                                      \
  X(cuMemsetD16_v2, "cuMemsetD16", 3020, 1, NONE)                                                    \
  X(cuMemsetD32_v2, "cuMemsetD32", 3020, 1, NONE)                                                    \
  X(cuMemsetD2D8_v2, "cuMemsetD2D8", 3020, 1, NONE)                                                  \
  X(cuMemsetD2D16_v2, "cuMemsetD2D16", 3020, 1, NONE)                                                \
  X(cuMemsetD2D32_v2, "cuMemsetD2D32", 3020, 1, NONE)                                                \
  X(cuMemPrefetchAsync_ptsz, "cuMemPrefetchAsync", 8000, 2, OWN_ARG4)                                \
  X(cuMemPrefetchAsync, "cuMemPrefetchAsync", 8000, 1, ARG4)                                         \
  X(cuMemPrefetchAsync_v2_ptsz, "cuMemPrefetchAsync", 12020, 2, OWN_ARG5)                            \
  X(cuMemPrefetchAsync_v2, "cuMemPrefetchAsync", 12020, 1, ARG5)                                     \
  X(cuMemPrefetchBatchAsync_ptsz, "cuMemPrefetchBatchAsync", 13000, 2, OWN_ARG8)                     \
  X(cuMemPrefetchBatchAsync, "cuMemPrefetchBatchAsync", 13000, 1, ARG8)                              \
  X(cuMemDiscardBatchAsync_ptsz, "cuMemDiscardBatchAsync", 13000, 2, OWN_ARG5)                       \
  X(cuMemDiscardBatchAsync, "cuMemDiscardBatchAsync", 13000, 1, ARG5)                                \
  X(cuMemDiscardAndPrefetchBatchAsync_ptsz, "cuMemDiscardAndPrefetchBatchAsync", 13000, 2, OWN_ARG8) \
  X(cuMemDiscardAndPrefetchBatchAsync, "cuMemDiscardAndPrefetchBatchAsync", 13000, 1, ARG8)          \
  X(cuMemcpyHtoD_v2_ptds, "cuMemcpyHtoD", 7000, 2, PER_THREAD)                                       \
  X(cuMemcpyDtoH_v2_ptds, "cuMemcpyDtoH", 7000, 2, PER_THREAD)                                       \
  X(cuMemcpyDtoD_v2_ptds, "cuMemcpyDtoD", 7000, 2, PER_THREAD)                                       \
  X(cuMemcpyDtoA_v2_ptds, "cuMemcpyDtoA", 7000, 2, PER_THREAD)                                       \
  X(cuMemcpyAtoD_v2_ptds, "cuMemcpyAtoD", 7000, 2, PER_THREAD)                                       \
  X(cuMemcpyHtoAAsync_v2_ptsz, "cuMemcpyHtoAAsync", 7000, 2, OWN_ARG5)                               \
  X(cuMemcpyHtoAAsync_v2, "cuMemcpyHtoAAsync", 3020, 1, ARG5)                                        \
  X(cuMemcpyAtoHAsync_v2_ptsz, "cuMemcpyAtoHAsync", 7000, 2, OWN_ARG5)                               \
  X(cuMemcpyAtoHAsync_v2, "cuMemcpyAtoHAsync", 3020, 1, ARG5)                                        \
  X(cuMemcpy2D_v2_ptds, "cuMemcpy2D", 7000, 2, PER_THREAD)                                           \
  X(cuMemcpy2DUnaligned_v2_ptds, "cuMemcpy2DUnaligned", 7000, 2, PER_THREAD)                         \
  X(cuMemcpy3D_v2_ptds, "cuMemcpy3D", 7000, 2, PER_THREAD)                                           \
  X(cuMemcpyHtoDAsync_v2_ptsz, "cuMemcpyHtoDAsync", 7000, 2, OWN_ARG4)                               \
  X(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", 3020, 1, ARG4)                                        \
  X(cuMemcpyDtoHAsync_v2_ptsz, "cuMemcpyDtoHAsync", 7000, 2, OWN_ARG4)                               \
  X(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", 3020, 1, ARG4)                                        \
  X(cuMemcpyDtoDAsync_v2_ptsz, "cuMemcpyDtoDAsync", 7000, 2, OWN_ARG4)                               \
  X(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync", 3020, 1, ARG4)                                        \
  X(cuMemcpy2DAsync_v2_ptsz, "cuMemcpy2DAsync", 7000, 2, OWN_ARG2)                                   \
  X(cuMemcpy2DAsync_v2, "cuMemcpy2DAsync", 3020, 1, ARG2)                                            \
  X(cuMemcpy3DAsync_v2_ptsz, "cuMemcpy3DAsync", 7000, 2, OWN_ARG2)                                   \
  X(cuMemcpy3DAsync_v2, "cuMemcpy3DAsync", 3020, 1, ARG2)                                            \
  X(cuMemcpyBatchAsync_ptsz, "cuMemcpyBatchAsync", 12080, 2, OWN_ARG9)                               \
  X(cuMemcpyBatchAsync, "cuMemcpyBatchAsync", 12080, 1, ARG9)                                        \
  X(cuMemcpyBatchAsync_v2_ptsz, "cuMemcpyBatchAsync", 13000, 2, OWN_ARG8)                            \
  X(cuMemcpyBatchAsync_v2, "cuMemcpyBatchAsync", 13000, 1, ARG8)                                     \
  X(cuMemcpy3DBatchAsync_ptsz, "cuMemcpy3DBatchAsync", 12080, 2, OWN_ARG5)                           \
  X(cuMemcpy3DBatchAsync, "cuMemcpy3DBatchAsync", 12080, 1, ARG5)                                    \
  X(cuMemcpy3DBatchAsync_v2_ptsz, "cuMemcpy3DBatchAsync", 13000, 2, OWN_ARG4)                        \
  X(cuMemcpy3DBatchAsync_v2, "cuMemcpy3DBatchAsync", 13000, 1, ARG4)                                 \
  X(cuMemsetD8_v2_ptds, "cuMemsetD8", 7000, 2, PER_THREAD)                                           \
  X(cuMemsetD16_v2_ptds, "cuMemsetD16", 7000, 2, PER_THREAD)                                         \
  X(cuMemsetD32_v2_ptds, "cuMemsetD32", 7000, 2, PER_THREAD)                                         \
  X(cuMemsetD2D8_v2_ptds, "cuMemsetD2D8", 7000, 2, PER_THREAD)                                       \
  X(cuMemsetD2D16_v2_ptds, "cuMemsetD2D16", 7000, 2, PER_THREAD)                                     \
  X(cuMemsetD2D32_v2_ptds, "cuMemsetD2D32", 7000, 2, PER_THREAD)                                     \
  X(cuStreamWriteValue32_ptsz, "cuStreamWriteValue32", 8000, 2, OWN_ARG1)                            \
  X(cuStreamWriteValue32, "cuStreamWriteValue32", 8000, 1, ARG1)                                     \
  X(cuStreamWriteValue32_v2_ptsz, "cuStreamWriteValue32", 11070, 2, OWN_ARG1)                        \
  X(cuStreamWriteValue32_v2, "cuStreamWriteValue32", 11070, 1, ARG1)                                 \
  X(cuStreamWaitValue32_ptsz, "cuStreamWaitValue32", 8000, 2, OWN_HOST_ARG1)                         \
  X(cuStreamWaitValue32, "cuStreamWaitValue32", 8000, 1, HOST_ARG1)                                  \
  X(cuStreamWaitValue32_v2_ptsz, "cuStreamWaitValue32", 11070, 2, OWN_HOST_ARG1)                     \
  X(cuStreamWaitValue32_v2, "cuStreamWaitValue32", 11070, 1, HOST_ARG1)                              \
  X(cuStreamWriteValue64_ptsz, "cuStreamWriteValue64", 9000, 2, OWN_ARG1)                            \
  X(cuStreamWriteValue64, "cuStreamWriteValue64", 9000, 1, ARG1)                                     \
  X(cuStreamWriteValue64_v2_ptsz, "cuStreamWriteValue64", 11070, 2, OWN_ARG1)                        \
  X(cuStreamWriteValue64_v2, "cuStreamWriteValue64", 11070, 1, ARG1)                                 \
  X(cuStreamWaitValue64_ptsz, "cuStreamWaitValue64", 9000, 2, OWN_HOST_ARG1)                         \
  X(cuStreamWaitValue64, "cuStreamWaitValue64", 9000, 1, HOST_ARG1)                                  \
  X(cuStreamWaitValue64_v2_ptsz, "cuStreamWaitValue64", 11070, 2, OWN_HOST_ARG1)                     \
  X(cuStreamWaitValue64_v2, "cuStreamWaitValue64", 11070, 1, HOST_ARG1)                              \
  X(cuStreamBatchMemOp_ptsz, "cuStreamBatchMemOp", 8000, 2, OWN_HOST_ARG1)                           \
  X(cuStreamBatchMemOp, "cuStreamBatchMemOp", 8000, 1, HOST_ARG1)                                    \
  X(cuStreamBatchMemOp_v2_ptsz, "cuStreamBatchMemOp", 11070, 2, OWN_HOST_ARG1)                       \
  X(cuStreamBatchMemOp_v2, "cuStreamBatchMemOp", 11070, 1, HOST_ARG1)                                \
  X(cuMemcpy_ptds, "cuMemcpy", 7000, 2, PER_THREAD)                                                  \
  X(cuMemcpyAsync_ptsz, "cuMemcpyAsync", 7000, 2, OWN_ARG4)                                          \
  X(cuMemcpyAsync, "cuMemcpyAsync", 4000, 1, ARG4)                                                   \
  X(cuMemcpyPeer_ptds, "cuMemcpyPeer", 7000, 2, PER_THREAD)                                          \
  X(cuMemcpyPeerAsync_ptsz, "cuMemcpyPeerAsync", 7000, 2, OWN_ARG6)                                  \
  X(cuMemcpyPeerAsync, "cuMemcpyPeerAsync", 4000, 1, ARG6)                                           \
  X(cuMemcpy3DPeer_ptds, "cuMemcpy3DPeer", 7000, 2, PER_THREAD)                                      \
  X(cuMemcpy3DPeerAsync_ptsz, "cuMemcpy3DPeerAsync", 7000, 2, OWN_ARG2)                              \
  X(cuMemcpy3DPeerAsync, "cuMemcpy3DPeerAsync", 4000, 1, ARG2)                                       \
  X(cuMemsetD8Async_ptsz, "cuMemsetD8Async", 7000, 2, OWN_ARG4)                                      \
  X(cuMemsetD8Async, "cuMemsetD8Async", 3020, 1, ARG4)                                               \
  X(cuMemsetD16Async_ptsz, "cuMemsetD16Async", 7000, 2, OWN_ARG4)                                    \
  X(cuMemsetD16Async, "cuMemsetD16Async", 3020, 1, ARG4)                                             \
  X(cuMemsetD32Async_ptsz, "cuMemsetD32Async", 7000, 2, OWN_ARG4)                                    \
  X(cuMemsetD32Async, "cuMemsetD32Async", 3020, 1, ARG4)                                             \
  X(cuMemsetD2D8Async_ptsz, "cuMemsetD2D8Async", 7000, 2, OWN_ARG6)                                  \
  X(cuMemsetD2D8Async, "cuMemsetD2D8Async", 3020, 1, ARG6)                                           \
  X(cuMemsetD2D16Async_ptsz, "cuMemsetD2D16Async", 7000, 2, OWN_ARG6)                                \
  X(cuMemsetD2D16Async, "cuMemsetD2D16Async", 3020, 1, ARG6)                                         \
  X(cuMemsetD2D32Async_ptsz, "cuMemsetD2D32Async", 7000, 2, OWN_ARG6)                                \
  X(cuMemsetD2D32Async, "cuMemsetD2D32Async", 3020, 1, ARG6)                                         \
  X(cuLaunchKernel_ptsz, "cuLaunchKernel", 7000, 2, OWN_ARG9)                                        \
  X(cuLaunchKernel, "cuLaunchKernel", 4000, 1, ARG9)                                                 \
  X(cuLaunchKernelEx_ptsz, "cuLaunchKernelEx", 11060, 2, OWN_CONFIG)                                 \
  X(cuLaunchKernelEx, "cuLaunchKernelEx", 11060, 1, CONFIG)                                          \
  X(cuStreamAddCallback_ptsz, "cuStreamAddCallback", 7000, 2, OWN_ARG1)                              \
  X(cuStreamAddCallback, "cuStreamAddCallback", 5000, 1, ARG1)                                       \
  X(cuLaunchHostFunc_ptsz, "cuLaunchHostFunc", 10000, 2, OWN_ARG1)                                   \
  X(cuLaunchHostFunc, "cuLaunchHostFunc", 10000, 1, ARG1)                                            \
  X(cuLaunchCooperativeKernel_ptsz, "cuLaunchCooperativeKernel", 9000, 2, OWN_ARG9)                  \
  X(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel", 9000, 1, ARG9)                           \
  X(cuGraphLaunch_ptsz, "cuGraphLaunch", 10000, 2, OWN_ARG2)                                         \
  X(cuGraphLaunch, "cuGraphLaunch", 10000, 1, ARG2)                                                  \
  X(cuMemBatchDecompressAsync_ptsz, "cuMemBatchDecompressAsync", 12060, 2, OWN_ARG5)                 \
  X(cuMemBatchDecompressAsync, "cuMemBatchDecompressAsync", 12060, 1, ARG5)                          \
  X(cuMemcpyWithAttributesAsync_ptsz, "cuMemcpyWithAttributesAsync", 13020, 2, OWN_ARG5)             \
  X(cuMemcpyWithAttributesAsync, "cuMemcpyWithAttributesAsync", 13020, 1, ARG5)                      \
  X(cuMemcpy3DWithAttributesAsync_ptsz, "cuMemcpy3DWithAttributesAsync", 13020, 2, OWN_ARG3)         \
  X(cuMemcpy3DWithAttributesAsync, "cuMemcpy3DWithAttributesAsync", 13020, 1, ARG3)                  \
  X(cuLaunchHostFunc_v2_ptsz, "cuLaunchHostFunc", 13010, 2, OWN_ARG1)                                \
  X(cuLaunchHostFunc_v2, "cuLaunchHostFunc", 13010, 1, ARG1)                                         \
  X(cuLaunchGridAsync, "cuLaunchGridAsync", 2000, 1, ARG4)                                           \
  X(cuWaitExternalSemaphoresAsync_ptsz, "cuWaitExternalSemaphoresAsync", 10000, 2, OWN_HOST_ARG4)    \
  X(cuWaitExternalSemaphoresAsync, "cuWaitExternalSemaphoresAsync", 10000, 1, HOST_ARG4)
