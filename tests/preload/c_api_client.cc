// Uses the C interface as a program that links libhotpack.so does. c_api_client preload|alone
#include "hotpack.h"
#include "tests/preload/client_api.h"

int main(int argc, char** argv) {
  CHECK(argc == 2);
  const bool preload = strcmp(argv[1], "preload") == 0;
  hotpack_stats stats;
  CHECK(hotpack_version() == HOTPACK_VERSION);
  CHECK(hotpack_get_stats(&stats, sizeof(stats)) == -1);  // no arena yet
  void* pointer = &stats;
  CHECK(hotpack_malloc(&pointer, 4096, nullptr) == CUDA_ERROR_INVALID_CONTEXT && pointer == &stats);
  CUcontext context = nullptr;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  CHECK(hotpack_malloc(&pointer, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(hotpack_malloc(nullptr, 1, nullptr) == CUDA_ERROR_INVALID_VALUE);
  OK(hotpack_free(nullptr, nullptr));
  OK(hotpack_malloc(&pointer, 4096, nullptr));
  CHECK(reinterpret_cast<CUdeviceptr>(pointer) >= 0x7000'0000'0000);
  OK(hotpack_free(pointer, nullptr));
  CHECK(hotpack_free(pointer, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(stub_count("cuMemAllocAsync") + stub_count("cuMemAlloc_v2") <= 1);  // the one without a context
  // Under the preload streams are seen, and there is one. Without it nothing is seen, so every release waits.
  CHECK(preload ? stub_count("cuStreamSynchronize") == 0 : stub_count("cuStreamSynchronize") >= 1);
  hotpack_expect_steps();
  hotpack_step();
  hotpack_interrupt();
  hotpack_resume();
  CHECK(hotpack_wait_plan(1000) == 1);
  CHECK(hotpack_get_stats(&stats, sizeof(stats)) == 0 && stats.requests == 1);
  // A caller with an older header asks for less, one with a newer header gets zeros behind what we know.
  struct Newer {
    hotpack_stats known;
    uint64_t unknown;
  } newer;
  newer.unknown = 99;
  CHECK(hotpack_get_stats(&newer.known, sizeof(newer)) == 0 && newer.known.requests == 1 && newer.unknown == 0);
  uint64_t first[2] = {0, 99};
  CHECK(hotpack_get_stats(reinterpret_cast<hotpack_stats*>(first), sizeof(uint64_t)) == 0 && first[0] == 1 &&
        first[1] == 99);
  CHECK(hotpack_get_stats(nullptr, 0) == -1);
  // A stream that is capturing: blocks released on it are put aside until the capture ends.
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  OK(cuStreamCreate(&stream, 0));
  OK(hotpack_malloc(&pointer, 4096, stream));
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  if (preload) {
    CHECK(hotpack_free(pointer, stream) != CUDA_SUCCESS);  // as cuMemFreeAsync of memory that the graph does not own
  } else {
    OK(hotpack_free(pointer, stream));
    CHECK(stub_syncs_while_capturing() == 0);
  }
  OK(cuStreamEndCapture(stream, &graph));
  if (preload) OK(hotpack_free(pointer, stream));
  void* other = nullptr;
  OK(hotpack_malloc(&other, 8192, stream));  // releases the blocks put aside for this stream
  OK(hotpack_free(other, stream));
  CHECK(hotpack_free(pointer, stream) == CUDA_ERROR_INVALID_VALUE);  // it is no live block any more
  CHECK(stub_syncs_while_capturing() == 0);
  const auto held = static_cast<uint64_t>(stub_chunks()) << 21;
  CHECK(held > 0 && hotpack_trim() == held && stub_chunks() == 0 && stub_mapped() == 0);
  OK(hotpack_malloc(&other, 8192, stream));
  CHECK(stub_chunks() == 1 && hotpack_trim() == 0);
  OK(hotpack_free(other, stream));
  return 0;
}
