// A program on the driver API, reached by each way: work on one stream, then on two that only hotpack orders.
#include "tests/preload/simulate_api.h"

int main(int argc, char** argv) {
  const SimulateApi api = GetSimulateApi(argc > 1 ? argv[1] : "link");
  CUcontext context = nullptr;
  OK(api.Init(0));
  OK(api.Retain(&context, 0));
  OK(api.SetCurrent(context));
  CUstream stream = nullptr;
  for (int i = 0; i < 200; ++i) {
    if (i == 100) OK(api.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr a = 0, b = 0;
    OK(api.Alloc(&a, 1 << 20));
    OK(api.Memset(a, 1, 1 << 20, i % 2 != 0 ? stream : nullptr));
    OK(api.Alloc(&b, 1 << 20));
    OK(api.Memset(b, 1, 1 << 20, stream));
    OK(api.Free(a));
    OK(api.Free(b));
  }
  return 0;
}
