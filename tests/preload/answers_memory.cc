// The scenarios of answers_client in which memory runs out or is given back.
#include <cstdint>
#include <vector>

#include "runtime/include/hotpack.h"
#include "tests/preload/answers_client.h"

static uint64_t (*TrimFunction())() {
  const auto trim = reinterpret_cast<uint64_t (*)()>(dlsym(RTLD_DEFAULT, "hotpack_trim"));
  CHECK(trim != nullptr);
  return trim;
}

// Free is what one request can have: pieces of a chunk that a small block keeps do not count.
void Fragments() {
  Start();
  std::vector<CUdeviceptr> blocks;
  CUdeviceptr block = 0;
  while (api.Alloc(&block, 256 << 10) == CUDA_SUCCESS) blocks.push_back(block);
  CHECK(blocks.size() > 800);
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i % 8 != 0) OK(api.Free(blocks[i]));
  }
  CHECK(Free() < 16 * kMiB);
  for (size_t i = 0; i < blocks.size() / 2; i += 8) OK(api.Free(blocks[i]));
  const size_t half = Free();
  CHECK(half > 100 * kMiB && half < 150 * kMiB);
  OK(api.Free(Alloc(half)));
  CHECK(Free() == half);
}

void Trim() {
  Start();
  const auto trim = TrimFunction();
  CHECK(trim() == 0);  // no arena yet
  const CUdeviceptr kept = Alloc(5 * kMiB);
  const size_t free = Free();
  MakeIdle(100 * kMiB);
  CHECK(Free() == free);  // idle memory counts as free
  const uint64_t given = trim();
  CHECK(given >= 100 * kMiB && given < 104 * kMiB);
  CHECK(Free() == free && trim() == 0);
  OK(api.Memset(kept, 1, 5 * kMiB));  // still there
  MakeIdle(100 * kMiB);
  CHECK(Free() == free);
  CUmemoryPool pool = nullptr;  // whose memory the arena's is
  OK(api.DefaultPool(&pool, 0));
  OK(api.PoolTrimTo(OwnPool(), 0));
  OK(api.PoolTrimTo(pool, 60 * kMiB));
  const uint64_t rest = trim();
  CHECK(rest >= 50 * kMiB && rest < 60 * kMiB);
  MakeIdle(100 * kMiB);
  OK(api.PoolTrimTo(pool, 0));
  CHECK(trim() == 0);
}

// The device has 256 MiB, of which `idle` MiB lie idle in the arena before each of these calls. SIMGPU_FAIL makes the
// first attempt of some fail from outside. The test is that there was a second attempt.
void Retry() {
  Start();
  constexpr size_t kBig = 200 * kMiB;
  CUmemGenericAllocationHandle handle = 0;
  MakeIdle(kBig);
  OK(Create(kBig, &handle));
  CHECK(Create(kBig, &handle) == CUDA_ERROR_OUT_OF_MEMORY);  // now there is nothing to give back
  OK(api.ReleaseHandle(handle));
  const CUmemoryPool pool = OwnPool();
  CUdeviceptr address = 0;
  MakeIdle(kBig);
  OK(api.AllocFromPool(&address, kBig, pool, nullptr));  // another pool's memory is left to the driver
  OK(api.FreeAsync(address, nullptr));
  OK(api.PoolTrimTo(pool, 0));
}

template <typename Call>
static void Twice(const char* name, CUresult expected, Call call) {
  MakeIdle(64 * kMiB);
  const CUresult result = call();
  if (result != expected) {
    fprintf(stderr, "%s gave %d\n", name, result);
    exit(1);
  }
}

void RetryAll() {
  Start();
  CUdeviceptr address = 0;
  CUmemoryPool pool = nullptr;
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUarray array = nullptr;
  CUmipmappedArray mipmapped = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUmemPoolProps props = {};
  CUDA_ARRAY_DESCRIPTOR flat = {};
  CUDA_ARRAY3D_DESCRIPTOR deep = {};
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  const char* image = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry f() { ret; }\n";
  OK(api.GraphCreate(&graph, 0));
  // Calls that are not simulated return the same at a retry. A refusal for lack of memory would be
  // CUDA_ERROR_OUT_OF_MEMORY.
  const CUresult no = CUDA_ERROR_NOT_SUPPORTED;
  Twice("managed", CUDA_SUCCESS, [&] { return api.Managed(&address, 4096, CU_MEM_ATTACH_GLOBAL); });
  Twice("pool", CUDA_SUCCESS, [&] { return api.PoolCreate(&pool, &props); });
  Twice("array", no, [&] { return api.Array(&array, &flat); });
  Twice("array3d", no, [&] { return api.Array3D(&array, &deep); });
  Twice("mipmapped", no, [&] { return api.Mipmapped(&mipmapped, &deep, 1); });
  Twice("module", CUDA_ERROR_FILE_NOT_FOUND, [&] { return api.ModuleLoad(&module, "/nowhere"); });
  Twice("module data", CUDA_SUCCESS, [&] { return api.ModuleData(&module, image); });
  Twice("module data ex", CUDA_SUCCESS, [&] { return api.ModuleDataEx(&module, image, 0, nullptr, nullptr); });
  Twice("fat binary", CUDA_SUCCESS, [&] { return api.ModuleFat(&module, image); });
  Twice("library data", CUDA_SUCCESS,
        [&] { return api.LibraryData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0); });
  Twice("library file", CUDA_ERROR_FILE_NOT_FOUND,
        [&] { return api.LibraryFile(&library, "/nowhere", nullptr, nullptr, 0, nullptr, nullptr, 0); });
  Twice("instantiate", CUDA_SUCCESS, [&] { return api.Instantiate(&executable, graph, nullptr, nullptr, 0); });
  Twice("with flags", CUDA_SUCCESS, [&] { return api.InstantiateFlags(&executable, graph, 0); });
  Twice("with parameters", CUDA_SUCCESS, [&] { return api.InstantiateParams(&executable, graph, &parameters); });
}

// A request beyond the device takes no pages. A request that is too large now is refused with one line, however often.
void OutOfMemory() {
  Start();
  MakeIdle(64 * kMiB);
  CUdeviceptr address = 0;
  CHECK(api.Alloc(&address, size_t{1} << 40) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(TrimFunction()() >= 64 * kMiB);
  std::vector<CUdeviceptr> blocks;
  while (api.Alloc(&address, 20 * kMiB) == CUDA_SUCCESS) blocks.push_back(address);
  CHECK(blocks.size() == 12);  // 256 MiB
  for (int i = 0; i < 20; ++i) CHECK(api.Alloc(&address, 20 * kMiB) == CUDA_ERROR_OUT_OF_MEMORY);
  for (CUdeviceptr block : blocks) OK(api.Memset(block, 1, 20 * kMiB));
  for (CUdeviceptr block : blocks) OK(api.Free(block));
  for (CUdeviceptr& block : blocks) block = Alloc(20 * kMiB);
  for (CUdeviceptr block : blocks) OK(api.Free(block));
}

// A job that is served by script runs out of memory, on its plan and away from it.
void OutOfMemoryAtTheEnd() {
  Start();
  const CUdeviceptr block = Alloc(100 * kMiB);
  CUdeviceptr address = 0;
  CHECK(api.Alloc(&address, 200 * kMiB) == CUDA_ERROR_OUT_OF_MEMORY);
  OK(api.Free(block));
}

void OutOfMemoryOnPlan() {
  Start();
  const auto wait_plan = reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "hotpack_wait_plan"));
  CUdeviceptr address = 0;
  for (int i = 0; i < 40; ++i) {
    std::vector<CUdeviceptr> blocks;
    for (size_t k = 1; k <= 10; ++k) blocks.push_back(Alloc(k * kMiB));
    if (i == 39) CHECK(api.Alloc(&address, 220 * kMiB) == CUDA_ERROR_OUT_OF_MEMORY);
    for (CUdeviceptr block : blocks) OK(api.Memset(block, 1, kMiB));
    for (CUdeviceptr block : blocks) OK(api.Free(block));
    wait_plan(-1);
  }
}

// Plays one iteration of a job. Returns true if all its requests succeeded. Allocated blocks are used and released.
static bool Iteration() {
  std::vector<CUdeviceptr> blocks;
  CUdeviceptr address = 0;
  for (size_t k = 1; k <= 10 && api.Alloc(&address, k * kMiB) == CUDA_SUCCESS; ++k) blocks.push_back(address);
  for (CUdeviceptr block : blocks) OK(api.Memset(block, 1, kMiB));
  for (CUdeviceptr block : blocks) OK(api.Free(block));
  return blocks.size() == 10;
}

// Another process takes the memory of a job that is served by script, between two iterations and in the middle of one.
// The job only sees errors, and is served by script again when the memory is back.
void Squeeze() {
  Start();
  const auto wait_plan = reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "hotpack_wait_plan"));
  const auto get_stats = reinterpret_cast<int (*)(hotpack_stats*, size_t)>(dlsym(RTLD_DEFAULT, "hotpack_get_stats"));
  const auto iterations = [&](int count) {
    for (int i = 0; i < count; ++i, wait_plan(-1)) CHECK(Iteration());
    hotpack_stats before = {}, after = {};
    get_stats(&before, sizeof(before));
    CHECK(Iteration());
    get_stats(&after, sizeof(after));
    CHECK(after.planned - before.planned == 10);
  };
  iterations(20);
  CUmemGenericAllocationHandle taken = 0;
  for (const size_t bytes : {240 * kMiB, 220 * kMiB, 254 * kMiB}) {
    OK(Create(bytes, &taken));  // the plan's pages, too
    for (int i = 0; i < 5; ++i) CHECK(!Iteration());
    OK(api.ReleaseHandle(taken));
    iterations(12);
    const CUdeviceptr first = Alloc(kMiB), second = Alloc(2 * kMiB);  // the first of an iteration
    OK(Create(bytes - 8 * kMiB, &taken));
    OK(api.Memset(first, 1, kMiB));
    OK(api.Memset(second, 1, 2 * kMiB));
    OK(api.Free(first));
    OK(api.Free(second));
    OK(api.ReleaseHandle(taken));
    iterations(12);
  }
}

// Idle memory of one context's arena is there for another's.
void Contexts() {
  const CUcontext first = Start();
  CUcontext second = nullptr;
  MakeIdle(200 * kMiB);
  const size_t free = Free();
  CHECK(free == 256 * kMiB);
  OK(api.CtxCreate(&second, 0, 0));
  CHECK(Free() == free);  // of the device
  const CUdeviceptr block = Alloc(200 * kMiB);
  CHECK(Free() == free - 200 * kMiB);
  unsigned of_driver = 1;
  OK(api.Attribute(&of_driver, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, block));
  CHECK(of_driver == 0);  // the arena has grown: the driver was not asked instead
  OK(api.SetCurrent(first));
  CHECK(Free() == free - 200 * kMiB);
  OK(api.Free(block));
  CHECK(Free() == free);
  OK(api.Free(Alloc(200 * kMiB)));
}

// While a stream is capturing no call may wait for the device: the call is refused and the capture continues.
void Capture() {
  Start();
  MakeIdle(200 * kMiB);
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUmemGenericAllocationHandle handle = 0;
  OK(api.StreamCreate(&stream, 0));
  OK(api.BeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(Create(200 * kMiB, &handle) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(TrimFunction()() == 0);
  OK(api.EndCapture(stream, &graph));
  OK(Create(200 * kMiB, &handle));
  OK(api.ReleaseHandle(handle));
}
