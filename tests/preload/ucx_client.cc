// A program that registers and exports its blocks by UCX:  ucx_client UCT UCM
// Prints a line for each kind of memory, then the ways of staging buffers, the signal's values, and what the memory
// hooks saw. A block's lines do not depend on its address.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <set>

#include "tests/preload/client_api.h"
#include "tests/preload/ucx_library.h"

namespace {

constexpr unsigned long long kBytes = 5 << 20;

template <typename Function>
Function* Symbol(void* library, const char* name) {
  const auto function = reinterpret_cast<Function*>(dlsym(library, name));
  CHECK(function != nullptr);
  return function;
}

struct Ucx {
  decltype(&UctRegister) reg;
  decltype(&UctExport) ex;
  decltype(&UctStage) stage;
  decltype(&UctSignal) signal;
  decltype(&UcmAllocate) allocate;
  decltype(&UcmFree) free;
};

Ucx Open(const char* uct_path, const char* ucm_path) {
  void* uct = dlopen(uct_path, RTLD_NOW | RTLD_LOCAL);
  void* ucm = dlopen(ucm_path, RTLD_NOW | RTLD_LOCAL);
  CHECK(uct != nullptr && ucm != nullptr);
  return {Symbol<decltype(UctRegister)>(uct, "UctRegister"), Symbol<decltype(UctExport)>(uct, "UctExport"),
          Symbol<decltype(UctStage)>(uct, "UctStage"),       Symbol<decltype(UctSignal)>(uct, "UctSignal"),
          Symbol<decltype(UcmAllocate)>(ucm, "UcmAllocate"), Symbol<decltype(UcmFree)>(ucm, "UcmFree")};
}

void Show(const Ucx& ucx, const char* kind, CUdeviceptr block, unsigned long long bytes) {
  UctRegistration r;
  UctKey key;
  const int registered = ucx.reg(block + 4096, bytes - 4096, &r);
  printf("%s: register %d, type %u, managed %u, device %d, whole %d, dma-buf %d, mapped %d, handles %llu\n", kind,
         registered, r.memory_type, r.managed, r.device, r.base == block && r.bytes == bytes, r.dma_buf, r.retain == 0,
         r.handle_types);
  const int exported = ucx.ex(block, &key);
  printf("%s: export %d, whole %d, legacy %d\n", kind, exported, key.base == block && key.bytes == bytes,
         key.way == UctWay::kLegacy);
}

CUdeviceptr Mapped() {
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  OK(cuMemCreate(&handle, 4 << 20, &properties, 0));
  OK(cuMemAddressReserve(&address, 4 << 20, 0, 0, 0));
  OK(cuMemMap(address, 4 << 20, 0, handle, 0));
  OK(cuMemSetAccess(address, 4 << 20, &access, 1));
  return address;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  OK(cuInit(0));
  CUcontext context = nullptr;
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  const Ucx ucx = Open(argv[1], argv[2]);
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));

  CUdeviceptr plain = 0, small = 0, pooled = 0, managed = 0;
  OK(cuMemAlloc(&plain, kBytes));
  OK(cuMemAlloc(&small, 10240));
  OK(cuMemAllocAsync(&pooled, kBytes, stream));
  OK(cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL));
  Show(ucx, "plain", plain, kBytes);
  Show(ucx, "small", small, 10240);
  Show(ucx, "pool", pooled, kBytes);
  Show(ucx, "managed", managed, kBytes);
  Show(ucx, "mapped", Mapped(), 4 << 20);

  int direct = 0;
  for (int i = 1; i <= 3; ++i) {
    UctKey key;
    OK(static_cast<CUresult>(ucx.stage(static_cast<unsigned long long>(i) << 20, &key)));
    direct += key.way == UctWay::kLegacy;
  }
  printf("staging: %d of 3 direct\n", direct);

  unsigned values[4] = {};
  OK(static_cast<CUresult>(ucx.signal(stream, plain)));
  OK(cuStreamSynchronize(stream));
  OK(cuMemcpyDtoH(values, plain, sizeof values));
  printf("signal: %u, %u %u\n", values[0], values[2], values[3]);

  // The cache of registrations knows an address only with its buffer's number: a later block there is another one.
  std::set<unsigned long long> numbers;
  bool seen = true;
  for (int i = 0; i < 3; ++i) {
    CUdeviceptr block = 0;
    unsigned long long base = 0, bytes = 0;
    UctKey key;
    OK(static_cast<CUresult>(ucx.allocate(&block, kBytes)));
    CHECK(ucx.ex(block, &key) == 0);
    numbers.insert(key.buffer);
    OK(static_cast<CUresult>(ucx.free(block, &base, &bytes)));
    seen = seen && base == block && bytes == kBytes;
  }
  printf("hooks: whole %d, %zu buffers\n", seen, numbers.size());
  return 0;
}
