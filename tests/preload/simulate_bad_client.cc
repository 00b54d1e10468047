// Uses memory that it has released.
#include "tests/preload/simulate_api.h"

int main() {
  const SimulateApi api = GetSimulateApi("link");
  CUcontext context = nullptr;
  CUdeviceptr a = 0;
  OK(api.Init(0));
  OK(api.Retain(&context, 0));
  OK(api.SetCurrent(context));
  OK(api.Alloc(&a, 1 << 20));
  OK(api.Free(a));
  api.Memset(a, 1, 1 << 20, nullptr);
  return 0;
}
