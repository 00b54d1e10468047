// A program on the simulated device that writes out of bounds on request. HOTPACK_DEBUG must find it.
//   debug_client clean|after|before|far|released|capture|weights
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

void Ok(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "debug_client: %s: error %d\n", call, static_cast<int>(result));
  exit(2);
}
#define OK(call) Ok(call, #call)

constexpr size_t kBytes[] = {1000, 300000, 4096, 5000000};
constexpr int kBlocks = 4, kSteps = 40, kBadStep = 30;
constexpr size_t kGap = 4;

unsigned char ByteAt(CUdeviceptr address) {
  unsigned char value = 0;
  OK(cuMemcpyDtoH(&value, address, 1));
  return value;
}

void Misbehave(const std::string& what, const CUdeviceptr* blocks) {
  if (what == "after") OK(cuMemsetD8(blocks[0], 0x5A, kBytes[0] + kGap));
  if (what == "before") OK(cuMemsetD8(blocks[1] - kGap, 0x5A, kGap + 8));
  if (what == "far") OK(cuMemsetD8(blocks[2] + kBytes[2] + 700, 0x5A, 1));
}

void Step(const std::string& what, bool bad) {
  CUdeviceptr blocks[kBlocks] = {};
  for (int i = 0; i < kBlocks; ++i) {
    OK(cuMemAlloc(&blocks[i], kBytes[i]));
    if (blocks[i] % 512 != 0) exit(3);
    CUdeviceptr base = 0;
    size_t bytes = 0;
    OK(cuMemGetAddressRange(&base, &bytes, blocks[i] + kBytes[i] / 2));
    if (base != blocks[i] || bytes < kBytes[i] || bytes >= kBytes[i] + 512) exit(3);
  }
  for (int i = 0; i < kBlocks; ++i) OK(cuMemsetD8(blocks[i], static_cast<unsigned char>(i + 1), kBytes[i]));
  if (bad) Misbehave(what, blocks);
  for (int i = 0; i < kBlocks; ++i) {  // no neighbour has been hit
    const bool own = bad && what == "after" && i == 0;
    const bool first_hit = bad && what == "before" && i == 1;
    if (!own && !first_hit && ByteAt(blocks[i]) != i + 1) exit(4);
    if (!own && ByteAt(blocks[i] + kBytes[i] - 1) != i + 1) exit(4);
  }
  for (CUdeviceptr block : blocks) OK(cuMemFree(block));
  if (bad && what == "released") printf("%02x %02x\n", ByteAt(blocks[1]), ByteAt(blocks[1] + kBytes[1] - 1));
}

// Requests and releases while a stream is capturing: the capture must not notice.
void Capture() {
  CUstream stream = nullptr, other = nullptr;
  CUgraph graph = nullptr;
  CUdeviceptr block = 0, second = 0;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&other, CU_STREAM_DEFAULT));
  OK(cuMemAllocAsync(&block, 5000, other));
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuMemAllocAsync(&second, 5000, other));
  OK(cuMemFreeAsync(block, other));
  OK(cuMemFreeAsync(second, other));
  OK(cuStreamEndCapture(stream, &graph));
  OK(cuGraphDestroy(graph));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "clean";
  CUcontext context = nullptr;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  using WaitPlan = int (*)(int);
  const auto wait_plan = reinterpret_cast<WaitPlan>(dlsym(RTLD_DEFAULT, "hotpack_wait_plan"));  // steps are short here
  for (int step = 0; step < kSteps; ++step) {
    if (wait_plan != nullptr) wait_plan(-1);
    Step(what, step == kBadStep);
  }
  if (what == "capture") Capture();
  if (what == "weights") {  // a block that is live to the end: hotpack_check, then the end of the context
    using Check = uint64_t (*)();
    const auto check = reinterpret_cast<Check>(dlsym(RTLD_DEFAULT, "hotpack_check"));
    CUdeviceptr first = 0, second = 0;
    OK(cuMemAlloc(&first, 2000));
    OK(cuMemAlloc(&second, 3000));
    OK(cuMemsetD8(first, 1, 2000 + kGap));
    if (check == nullptr || check() != 1 || check() != 1) return 5;
    OK(cuMemsetD8(second, 1, 3000 + kGap));
    OK(cuDevicePrimaryCtxReset(0));
  }
  return 0;
}
