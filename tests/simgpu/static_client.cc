// Linked with the archive of the runtime. Some of its names are also the runtime's, and it exports its symbols to other
// libraries (-rdynamic), as programs with plugins do. The two must not affect each other.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <string>
#include <unordered_map>
#include <vector>

namespace simgpu_runtime {
int CurrentDevice();
int CurrentDevice() { return 77; }
struct DriverTable {
  int calls = 0;
};
const DriverTable& Driver();
const DriverTable& Driver() {
  static const DriverTable table{5};
  return table;
}
}  // namespace simgpu_runtime

extern "C" __attribute__((visibility("default"))) int Load() { return 3; }

int main() {
  std::unordered_map<const void*, std::string> names;
  std::vector<void*> blocks(10);
  for (void*& block : blocks) {
    if (cudaMalloc(&block, 1 << 20) != cudaSuccess) return 1;
    names[block] = "block";
  }
  int device = -1;
  if (cudaGetDevice(&device) != cudaSuccess || device != 0) return 2;
  if (simgpu_runtime::CurrentDevice() != 77 || simgpu_runtime::Driver().calls != 5 || Load() != 3) return 4;
  if (names.size() != 10) return 5;
  for (void* block : blocks) {
    if (cudaMemset(block, 1, 1 << 20) != cudaSuccess || cudaFree(block) != cudaSuccess) return 6;
  }
  if (dlsym(RTLD_DEFAULT, "CudaIsNotHere") != nullptr || dlsym(RTLD_DEFAULT, "Load") == nullptr) return 7;
  if (dlsym(RTLD_DEFAULT, "cudaMalloc") != nullptr) return 8;  // else it would serve other libraries too
  printf("done\n");
  return 0;
}
