// A program that opens a communication library:  comm_client LIBRARY
// Prints the result of registering a block, how many channels transfer directly, and the results of exports of its own,
// all requested from one place.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>

#include "tests/preload/client_api.h"
#include "tests/preload/comm_library.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  CHECK(library != nullptr);
  const auto connect = reinterpret_cast<decltype(&CommConnect)>(dlsym(library, "CommConnect"));
  const auto reg = reinterpret_cast<decltype(&CommRegister)>(dlsym(library, "CommRegister"));
  CHECK(connect != nullptr && reg != nullptr);
  OK(cuInit(0));
  CUcontext context = nullptr;
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  CUdeviceptr first = 0;
  OK(cuMemAlloc(&first, 5 << 20));
  const int registered = reg(first + 4096, (5 << 20) - 4096);
  OK(cuMemFree(first));
  int direct = 0;
  CUresult exported[3];
  for (CUresult& result : exported) {
    CUdeviceptr block = 0;
    CUipcMemHandle handle;
    OK(cuMemAlloc(&block, 3 << 20));
    const int got = connect(4);
    CHECK(got >= 0);
    direct += got;
    result = cuIpcGetMemHandle(&handle, block);
    OK(cuMemFree(block));
  }
  printf("register %d\ndirect %d, exports %d %d %d\n", registered, direct, exported[0], exported[1], exported[2]);
  return 0;
}
