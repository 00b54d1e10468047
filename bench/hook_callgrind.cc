// Serves exactly PAIRS pairs of cuMemAlloc and cuMemFree by script, through the hooks, for an instruction count by
// callgrind (README.md here). Run it under the preload, on the simulated device.
#define __CUDA_API_VERSION_INTERNAL 1  // every variant under its exact name (_v2)
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/training_sequence.h"
#include "runtime/include/hotpack.h"

namespace {

template <typename Function>
Function* Own(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

bool PlayStep(const hotpack::bench::Sequence& sequence, std::vector<CUdeviceptr>* addresses) {
  for (const hotpack::bench::Call& call : sequence.calls) {
    CUdeviceptr& address = (*addresses)[static_cast<size_t>(call.slot)];
    const CUresult result = call.bytes != 0 ? cuMemAlloc_v2(&address, call.bytes) : cuMemFree_v2(address);
    if (result != CUDA_SUCCESS) return false;
  }
  return true;
}

bool OnDevice() {
  CUcontext context = nullptr;
  return cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
         cuCtxSetCurrent(context) == CUDA_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  const hotpack::bench::Sequence sequence = hotpack::bench::MakeTrainingSequence(64);
  std::vector<CUdeviceptr> addresses(static_cast<size_t>(sequence.slots));
  const auto step = Own(&hotpack_step, "hotpack_step");
  const auto wait = Own(&hotpack_wait_plan, "hotpack_wait_plan");
  const auto get_stats = Own(&hotpack_get_stats, "hotpack_get_stats");
  const long pairs = argc == 2 ? strtol(argv[1], nullptr, 10) : 0;
  if (pairs <= 0 || pairs % sequence.slots != 0 || step == nullptr || wait == nullptr || get_stats == nullptr) {
    fprintf(stderr, "hook_callgrind: give the number of pairs, a multiple of %d, under the preload\n",
            static_cast<int>(sequence.slots));
    return 2;
  }
  if (!OnDevice()) return 3;
  hotpack_stats stats = {};
  for (int i = 0; i < 50 && (stats.steady_iteration < 0 || stats.planned_steady == 0); ++i) {
    step();
    if (!PlayStep(sequence, &addresses)) return 3;
    wait(-1);
    if (get_stats(&stats, sizeof(stats)) == 0 && stats.requests_steady < static_cast<uint64_t>(sequence.slots))
      stats.planned_steady = 0;
  }
  for (int i = 0; i < 8; ++i) {  // until pending plans are followed
    if (!PlayStep(sequence, &addresses)) return 3;
    wait(-1);
  }
  hotpack_stats before = {};
  get_stats(&before, sizeof(before));
  for (long i = 0; i < pairs / sequence.slots; ++i) {
    if (!PlayStep(sequence, &addresses)) return 3;
  }
  get_stats(&stats, sizeof(stats));
  if (stats.planned - before.planned != static_cast<uint64_t>(pairs)) {
    fprintf(stderr, "hook_callgrind: the step was not served by script\n");
    return 1;
  }
  const uint64_t heap = stats.heap_allocations_steady - before.heap_allocations_steady;
  printf("%ld pairs served by script; %llu driver calls an iteration, %llu heap allocations\n", pairs,
         static_cast<unsigned long long>(stats.driver_memory_calls_steady), static_cast<unsigned long long>(heap));
  return stats.driver_memory_calls_steady == 0 && heap == 0 ? 0 : 1;
}
