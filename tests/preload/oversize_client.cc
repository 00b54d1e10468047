// A training loop of many sizes on a small device. Prints its need, and where the device's memory ran out.
//   oversize_client [WEIGHT_MIB]
#include <cuda.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kSteps = 60, kRequests = 160, kLive = 24;

struct Random {
  uint64_t state;
  uint64_t Next() { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33; }
};

struct Block {
  CUdeviceptr address = 0;
  size_t bytes = 0;
};

bool Allocate(Block* block, size_t bytes) {
  block->bytes = bytes;
  const CUresult result = cuMemAlloc(&block->address, bytes);
  if (result == CUDA_SUCCESS) return cuMemsetD8(block->address, 1, 256) == CUDA_SUCCESS;
  printf("error %d\n", static_cast<int>(result));
  return false;
}

// The same requests each time, released in an order of their own.
bool Step() {
  Random random{12345};
  std::vector<Block> live;
  bool good = true;
  for (int i = 0; i < kRequests && good; ++i) {
    if (live.size() == kLive) {
      const size_t victim = random.Next() % live.size();
      if (cuMemFree(live[victim].address) != CUDA_SUCCESS) return false;
      live[victim] = live.back();
      live.pop_back();
    }
    live.emplace_back();
    good = Allocate(&live.back(), (1100u << 10) + (random.Next() % 3000 << 10));
  }
  for (const Block& block : live) {
    if (block.address != 0 && cuMemFree(block.address) != CUDA_SUCCESS) return false;
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 2;
  if (cuCtxSetCurrent(context) != CUDA_SUCCESS) return 2;
  Block weights;
  const size_t mebibytes = argc > 1 ? strtoull(argv[1], nullptr, 10) : 0;
  if (mebibytes != 0 && !Allocate(&weights, mebibytes << 20)) return 1;
  using WaitPlan = int (*)(int);
  const auto wait_plan = reinterpret_cast<WaitPlan>(dlsym(RTLD_DEFAULT, "hotpack_wait_plan"));  // steps are short here
  for (int step = 0; step < kSteps; ++step) {
    if (wait_plan != nullptr) wait_plan(-1);
    if (!Step()) {
      printf("step %d failed\n", step);
      return 1;
    }
  }
  if (mebibytes != 0 && cuMemFree(weights.address) != CUDA_SUCCESS) return 2;
  printf("done\n");
  return 0;
}
