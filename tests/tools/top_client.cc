// The program that `hotpack top` watches: top_client [end]. It makes 20 equal iterations, prints its figures and waits
// for a line on standard input. It does so until it reads something else. With `end` it then ends the context, prints a
// line and waits for another one.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "runtime/include/hotpack.h"

namespace {

constexpr int kIterations = 20, kBlocks = 10;
void* driver = nullptr;

template <typename Function>
Function Find(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr) {
    fprintf(stderr, "top_client: no %s\n", name);
    exit(1);
  }
  return reinterpret_cast<Function>(found);
}

template <typename... Arguments>
void Call(const char* name, Arguments... arguments) {
  if (Find<int (*)(Arguments...)>(driver, name)(arguments...) == 0) return;
  fprintf(stderr, "top_client: %s failed\n", name);
  exit(1);
}

void Iterate() {
  unsigned long long blocks[kBlocks] = {};
  for (int i = 0; i < kBlocks; ++i) Call("cuMemAlloc_v2", &blocks[i], size_t{1} << (16 + i % 5));
  for (const unsigned long long block : blocks) Call("cuMemFree_v2", block);
}

}  // namespace

int main(int argc, char**) {
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return 1;
  void* context = nullptr;
  Call("cuInit", 0u);
  Call("cuDevicePrimaryCtxRetain", &context, 0);
  Call("cuCtxSetCurrent", context);
  unsigned long long kept = 0;
  Call("cuMemAlloc_v2", &kept, size_t{3} << 20);
  do {
    for (int i = 0; i < kIterations; ++i) Iterate();
    hotpack_stats stats = {};
    hotpack_memory memory = {};
    Find<decltype(&hotpack_get_stats)>(RTLD_DEFAULT, "hotpack_get_stats")(&stats, sizeof(stats));
    Find<decltype(&hotpack_get_memory)>(RTLD_DEFAULT, "hotpack_get_memory")(0, &memory, sizeof(memory));
    printf("%llu %llu %llu\n", static_cast<unsigned long long>(stats.requests),
           static_cast<unsigned long long>(memory.reserved), static_cast<unsigned long long>(memory.live));
    fflush(stdout);
  } while (getchar() == '\n');
  if (argc == 1) return 0;
  Call("cuDevicePrimaryCtxRelease_v2", 0);
  printf("ended\n");
  fflush(stdout);
  getchar();
  return 0;
}
