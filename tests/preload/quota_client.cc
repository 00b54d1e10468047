// A program that takes blocks of 10 MiB until it gets no more:  quota_client WAY    (link, dlsym or proc). Built with
// QUOTA_LIBRARY, it takes them from libhotpack.so.
#include <vector>

#include "tests/preload/answers_client.h"

#if defined(QUOTA_LIBRARY)
#include "hotpack.h"
#endif

namespace {

#if defined(QUOTA_LIBRARY)
CUresult Take(CUdeviceptr* block, size_t bytes) {
  return static_cast<CUresult>(hotpack_malloc(reinterpret_cast<void**>(block), bytes, nullptr));
}
CUresult GiveBack(CUdeviceptr block) {
  return static_cast<CUresult>(hotpack_free(reinterpret_cast<void*>(block), nullptr));
}
#else
CUresult Take(CUdeviceptr* block, size_t bytes) { return api.Alloc(block, bytes); }
CUresult GiveBack(CUdeviceptr block) { return api.Free(block); }
#endif

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  api = GetAnswersApi(argv[1]);
  Start();
  for (int round = 0; round < 3; ++round) {
    std::vector<CUdeviceptr> blocks;
    CUresult result = CUDA_SUCCESS;
    while (result == CUDA_SUCCESS && blocks.size() < 100) {
      CUdeviceptr block = 0;
      result = Take(&block, 10 * kMiB);
      if (result == CUDA_SUCCESS) blocks.push_back(block);
    }
    printf("%zu blocks, then %d\n", blocks.size(), result);
    for (CUdeviceptr block : blocks) OK(GiveBack(block));
  }
  return 0;
}
