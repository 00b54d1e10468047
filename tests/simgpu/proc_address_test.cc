// cuGetProcAddress: names, versions, streams. The versions are those of cudaTypedefs.h.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tests/simgpu/support.h"

namespace simgpu_test {
namespace {

using Get4 = CUresult (*)(const char*, void**, int, cuuint64_t);

// The exported function of that name.
void* Symbol(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  return dlsym(library, name);
}

void* Get(const char* name, int version, cuuint64_t flags = 0, CUresult want = CUDA_SUCCESS) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  EXPECT_EQ(cuGetProcAddress(name, &function, version, flags, &status), want) << name << " " << version;
  EXPECT_EQ(status == CU_GET_PROC_ADDRESS_SUCCESS, want == CUDA_SUCCESS);
  return function;
}

TEST(ProcAddress, GivesTheHighestVariantNotAboveTheVersion) {
  EXPECT_EQ(Get("cuMemAlloc", 3020), Symbol("cuMemAlloc_v2"));
  EXPECT_EQ(Get("cuMemAlloc", 13000), Symbol("cuMemAlloc_v2"));
  EXPECT_EQ(Get("cuMemAlloc", 2000), Symbol("cuMemAlloc"));
  EXPECT_EQ(Get("cuMemAlloc", 3010), Symbol("cuMemAlloc"));
  EXPECT_EQ(Get("cuMemAlloc", 1000, 0, CUDA_ERROR_NOT_FOUND), nullptr);
  EXPECT_EQ(Get("cuCtxCreate", 3020), Symbol("cuCtxCreate_v2"));
  EXPECT_EQ(Get("cuCtxCreate", 11040), Symbol("cuCtxCreate_v3"));
  EXPECT_EQ(Get("cuCtxCreate", 13000), Symbol("cuCtxCreate_v4"));
  EXPECT_EQ(Get("cuStreamGetCaptureInfo", 12020), Symbol("cuStreamGetCaptureInfo_v2"));
  EXPECT_EQ(Get("cuStreamGetCaptureInfo", 12030), Symbol("cuStreamGetCaptureInfo_v3"));
  EXPECT_EQ(Get("cuGetProcAddress", 11030), Symbol("cuGetProcAddress"));
  EXPECT_EQ(Get("cuGetProcAddress", 12000), Symbol("cuGetProcAddress_v2"));
  EXPECT_EQ(Get("cuMemHostRegister", 4000), Symbol("cuMemHostRegister"));
  EXPECT_EQ(Get("cuMemHostRegister", 6050), Symbol("cuMemHostRegister_v2"));
}

TEST(ProcAddress, GivesPerThreadVariantsWhereThereAreSome) {
  constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  EXPECT_EQ(Get("cuMemAllocAsync", 11020), Symbol("cuMemAllocAsync"));
  EXPECT_EQ(Get("cuMemAllocAsync", 11020, kPerThread), Symbol("cuMemAllocAsync_ptsz"));
  EXPECT_EQ(Get("cuMemAllocAsync", 11020, CU_GET_PROC_ADDRESS_LEGACY_STREAM), Symbol("cuMemAllocAsync"));
  EXPECT_EQ(Get("cuMemcpyHtoD", 7000, kPerThread), Symbol("cuMemcpyHtoD_v2_ptds"));
  EXPECT_EQ(Get("cuLaunchKernel", 7000, kPerThread), Symbol("cuLaunchKernel_ptsz"));
  EXPECT_EQ(Get("cuLaunchKernel", 4000), Symbol("cuLaunchKernel"));
  EXPECT_EQ(Get("cuMemAlloc", 3020, kPerThread), Symbol("cuMemAlloc_v2")) << "has no per-thread variant";
}

TEST(ProcAddress, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(Get("cuNoSuchThing", 13000, 0, CUDA_ERROR_NOT_FOUND), nullptr);
  EXPECT_EQ(Get("cuMemAlloc_v2", 13000, 0, CUDA_ERROR_NOT_FOUND), nullptr) << "base names only";
  EXPECT_EQ(Get("cuMemAllocAsync", 11010, 0, CUDA_ERROR_NOT_FOUND), nullptr);
  CUdriverProcAddressQueryResult status;
  void* function = nullptr;
  EXPECT_EQ(cuGetProcAddress("cuMemAllocAsync", &function, 11010, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_EQ(cuGetProcAddress("cuNoSuchThing", &function, 13000, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(cuGetProcAddress("cuInit", nullptr, 13000, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGetProcAddress("cuInit", &function, 13000, 3, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGetProcAddress("cuInit", &function, 13000, 0, nullptr), CUDA_SUCCESS) << "the status may be null";
}

TEST(ProcAddress, HasAFormWithoutStatus) {
  const auto get = reinterpret_cast<Get4>(Symbol("cuGetProcAddress"));
  ASSERT_NE(get, nullptr);
  void* function = nullptr;
  EXPECT_EQ(get("cuMemFree", &function, 3020, 0), CUDA_SUCCESS);
  EXPECT_EQ(function, Symbol("cuMemFree_v2"));
  EXPECT_EQ(get("cuNoSuchThing", &function, 3020, 0), CUDA_ERROR_NOT_FOUND);
}

// Every entry of the table is exported under its own name.
TEST(ProcAddress, TableMatchesTheExports) {
  struct Entry {
    const char* base;
    int version;
    const char* symbol;
    bool per_thread;
  };
  const Entry entries[] = {
#define SIMGPU_ENTRY(base, version, symbol, per_thread) {#base, version, #symbol, per_thread},
#include "simgpu/driver/entry_points.inc"
#undef SIMGPU_ENTRY
  };
  for (const Entry& e : entries) {
    EXPECT_NE(Symbol(e.symbol), nullptr) << e.symbol;
    EXPECT_EQ(Get(e.base, e.version, e.per_thread ? 2 : 0), Symbol(e.symbol)) << e.symbol;
  }
  EXPECT_GT(sizeof entries / sizeof entries[0], 600u);
}

}  // namespace
}  // namespace simgpu_test
