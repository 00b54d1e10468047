// A program that allocates, uses, frees, allocates again and uses on another stream. `linked`: the driver API by
// symbol; `dlsym`, `lookup`: by dlopen and dlsym, or cuGetProcAddress; `runtime`: the runtime API. A second word:
// `twice`, one block is released twice; `refused`, its release is refused at first.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstring>

#include "tests/simgpu/support.h"

namespace {

using Alloc = CUresult (*)(CUdeviceptr*, size_t);
using Free = CUresult (*)(CUdeviceptr);

struct Api {
  Alloc alloc;
  Free free;
};

Api Find(const char* how) {
  if (strcmp(how, "linked") == 0) return {&cuMemAlloc, &cuMemFree};
  if (strcmp(how, "runtime") == 0) {
    return {[](CUdeviceptr* p, size_t bytes) {
              return static_cast<CUresult>(cudaMalloc(reinterpret_cast<void**>(p), bytes));
            },
            [](CUdeviceptr p) { return static_cast<CUresult>(cudaFree(reinterpret_cast<void*>(p))); }};
  }
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (strcmp(how, "dlsym") == 0) {
    return {reinterpret_cast<Alloc>(dlsym(library, "cuMemAlloc_v2")),
            reinterpret_cast<Free>(dlsym(library, "cuMemFree_v2"))};
  }
  const auto get = reinterpret_cast<decltype(&cuGetProcAddress)>(dlsym(library, "cuGetProcAddress_v2"));
  Api api = {};
  CUdriverProcAddressQueryResult status;
  MUST(get("cuMemAlloc", reinterpret_cast<void**>(&api.alloc), 3020, 0, &status));
  MUST(get("cuMemFree", reinterpret_cast<void**>(&api.free), 3020, 0, &status));
  return api;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  simgpu_test::Start();
  const Api api = Find(argv[1]);
  const CUstream s1 = simgpu_test::NewStream(), s2 = simgpu_test::NewStream();
  CUdeviceptr p = 0, q = 0, other = 0;
  MUST(api.alloc(&other, 100));
  MUST(api.alloc(&p, 5000));
  simgpu_test::Touch(s1, p);
  simgpu_test::Touch(s1, other);
  MUST(api.free(p));
  MUST(api.alloc(&q, 5000));
  simgpu_test::Touch(s2, q);
  // A capture refuses the release; the program retries it afterwards.
  if (argc > 2 && strcmp(argv[2], "refused") == 0) {
    CUgraph graph = nullptr;
    MUST(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
    if (api.free(q) == CUDA_SUCCESS) return 3;
    cuStreamEndCapture(s1, &graph);
  }
  MUST(api.free(q));
  MUST(api.free(other));
  if (argc > 2 && strcmp(argv[2], "twice") == 0) api.free(q);
  return 0;
}
