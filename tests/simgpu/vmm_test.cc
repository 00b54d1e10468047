// Virtual memory management on the simulated device: reservations, handles, mappings, access.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "tests/simgpu/driver_fixture.h"
#include "tests/support/sanitized.h"

namespace simgpu_test {
namespace {

using VmmTest = DriverTest;

TEST_F(VmmTest, MapsMemory) {
  const uint64_t before = Free();
  CUdeviceptr base = 0, other = 0;
  ASSERT_EQ(cuMemAddressReserve(&base, 8 * kPage, 0, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(base % kPage, 0u);
  EXPECT_EQ(Free(), before);  // addresses are no memory
  const CUmemGenericAllocationHandle handle = NewHandle();
  EXPECT_EQ(before - Free(), kPage);
  EXPECT_EQ(cuMemMap(base + 4096, kPage, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);       // alignment
  EXPECT_EQ(cuMemMap(base, kPage, kPage, handle, 0), CUDA_ERROR_INVALID_VALUE);          // offset
  EXPECT_EQ(cuMemMap(base + 8 * kPage, kPage, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);  // beyond the reservation
  EXPECT_EQ(cuMemMap(base, kPage, 0, handle + 8, 0), CUDA_ERROR_INVALID_VALUE);          // no handle
  ASSERT_EQ(cuMemMap(base, kPage, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemMap(base, kPage, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);  // twice
  char byte = 9;
  EXPECT_EQ(cuMemcpyHtoD(base, &byte, 1), CUDA_ERROR_INVALID_VALUE) << "not accessible yet";
  Enable(base, kPage);
  EXPECT_EQ(cuMemcpyHtoD(base, &byte, 1), CUDA_SUCCESS);
  // The same memory at a second place.
  ASSERT_EQ(cuMemMap(base + 2 * kPage, kPage, 0, handle, 0), CUDA_SUCCESS);
  Enable(base + 2 * kPage, kPage);
  byte = 0;
  EXPECT_EQ(cuMemcpyDtoH(&byte, base + 2 * kPage, 1), CUDA_SUCCESS);
  EXPECT_EQ(byte, 9);
  // Memory lives while anything names it.
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(base, kPage), CUDA_SUCCESS);
  EXPECT_EQ(before - Free(), kPage);
  CUmemGenericAllocationHandle retained = 0;
  EXPECT_EQ(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(base + 2 * kPage)), CUDA_SUCCESS);
  EXPECT_EQ(retained, handle);
  EXPECT_EQ(cuMemUnmap(base + 2 * kPage, kPage), CUDA_SUCCESS);
  EXPECT_EQ(before - Free(), kPage);
  EXPECT_EQ(cuMemRelease(retained), CUDA_SUCCESS);
  EXPECT_EQ(Free(), before);
  EXPECT_EQ(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(base, kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressReserve(&other, kPage + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressFree(base, 8 * kPage), CUDA_SUCCESS);
}

// A kernel may get a number that was an address of unmapped memory. The host may have that address since.
TEST_F(VmmTest, ForgetsWhatWasWrittenToUnmappedMemory) {
  const CUdeviceptr arena = NewArena(1);
  ASSERT_EQ(cuMemsetD8(arena, 1, kPage), CUDA_SUCCESS);
  ASSERT_EQ(cuMemUnmap(arena, kPage), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAddressFree(arena, kPage), CUDA_SUCCESS);
  void* const host = mmap(reinterpret_cast<void*>(arena), kPage, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(host, reinterpret_cast<void*>(arena));
  memset(host, 7, kPage);
  Touch(nullptr, arena);
  EXPECT_EQ(static_cast<char*>(host)[0], 7) << "the host's memory";
  munmap(host, kPage);
}

TEST_F(VmmTest, NeedsContiguousMappingsForUnmapAndAccess) {
  const CUdeviceptr arena = NewArena(4);
  EXPECT_EQ(cuMemUnmap(arena + kPage, kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(arena, 4 * kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressFree(arena, 4 * kPage), CUDA_ERROR_INVALID_VALUE) << "still mapped";
  EXPECT_EQ(cuMemUnmap(arena + 2 * kPage, 2 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(arena, kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(arena, 4 * kPage), CUDA_SUCCESS);
}

// cuda.h, cuMemUnmap: "cannot unmap a sub-range of an address range mapped by cuMemCreate / cuMemMap". cuMemSetAccess
// takes a range of whole allocations.
TEST_F(VmmTest, ChangesNoPartOfAMapping) {
  const uint64_t before = Free();
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUdeviceptr base = 0;
  ASSERT_EQ(cuMemAddressReserve(&base, 8 * kPage, 0, 0, 0), CUDA_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_EQ(cuMemCreate(&handle, 4 * kPage, &prop, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemMap(base + i * 4 * kPage, 4 * kPage, 0, handle, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  }
  CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  EXPECT_EQ(cuMemSetAccess(base, kPage, &access, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemSetAccess(base + kPage, 3 * kPage, &access, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemSetAccess(base, 5 * kPage, &access, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemSetAccess(base, 8 * kPage, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(base, kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(base + 3 * kPage, kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(base, 7 * kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(before - Free(), 8 * kPage);
  EXPECT_EQ(cuMemUnmap(base, 8 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(Free(), before);
  EXPECT_EQ(cuMemAddressFree(base, 8 * kPage), CUDA_SUCCESS);
}

// 16 GiB in pages of 2 MiB must not cost the host its mappings (vm.max_map_count is 65530).
TEST_F(VmmTest, ThousandsOfMappingsCostNoHostMappings) {
#ifdef HOTPACK_SANITIZED
  GTEST_SKIP() << "a sanitizer has mappings of its own";
#endif
  const auto host_mappings = [] {
    std::ifstream maps("/proc/self/maps");
    int lines = 0;
    for (std::string line; std::getline(maps, line);) ++lines;
    return lines;
  };
  const int before = host_mappings();
  const CUdeviceptr arena = NewArena(4000);
  for (int i = 0; i < 4000; i += 2) EXPECT_EQ(cuMemUnmap(arena + i * kPage, kPage), CUDA_SUCCESS);
  EXPECT_LT(host_mappings() - before, 10);
  for (int i = 1; i < 4000; i += 2) EXPECT_EQ(cuMemUnmap(arena + i * kPage, kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(arena, 4000 * kPage), CUDA_SUCCESS);
}

TEST_F(VmmTest, HasNoHandlesForOtherProcesses) {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle chunk = 0;
  CUdeviceptr p = 0;
  CUipcMemHandle handle = {};
  ASSERT_EQ(cuMemAddressReserve(&p, kPage, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemCreate(&chunk, kPage, &prop, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(p, kPage, 0, chunk, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuIpcGetMemHandle(&handle, p), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(p, kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(chunk), CUDA_SUCCESS);
  // Memory without a handle type cannot be exported.
  int descriptor = -1;
  ASSERT_EQ(cuMemCreate(&chunk, kPage, &prop, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemExportToShareableHandle(&descriptor, chunk, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemRelease(chunk), CUDA_SUCCESS);
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  EXPECT_EQ(cuMemCreate(&chunk, kPage, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemAddressFree(p, kPage), CUDA_SUCCESS);
}

// Two mappings of the same bytes stand for two processes: the descriptor is a file that any process can map.
TEST_F(VmmTest, MemoryIsSharedByAFileDescriptor) {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  size_t free_before = 0, free_after = 0, total = 0;
  CUmemGenericAllocationHandle own = 0, imported = 0;
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAddressReserve(&p, 4 * kPage, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemCreate(&own, 2 * kPage, &prop, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(p, 2 * kPage, 0, own, 0), CUDA_SUCCESS);
  Enable(p, 2 * kPage);
  ASSERT_EQ(cuMemsetD8(p, 7, 2 * kPage), CUDA_SUCCESS);
  ASSERT_EQ(cuMemGetInfo(&free_before, &total), CUDA_SUCCESS);
  int descriptor = -1;
  ASSERT_EQ(cuMemExportToShareableHandle(&descriptor, own, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  EXPECT_EQ(close(descriptor), 0) << "it is the caller's";
  ASSERT_EQ(cuMemMap(p + 2 * kPage, 2 * kPage, 0, imported, 0), CUDA_SUCCESS);
  Enable(p + 2 * kPage, 2 * kPage);
  ASSERT_EQ(cuMemGetInfo(&free_after, &total), CUDA_SUCCESS);
  EXPECT_EQ(free_after, free_before) << "the memory is there once";
  unsigned char seen[2] = {};
  ASSERT_EQ(cuMemcpyDtoH(&seen[0], p + 2 * kPage, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8(p + 3 * kPage, 9, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoH(&seen[1], p + kPage, 1), CUDA_SUCCESS);
  EXPECT_EQ(seen[0], 7);
  EXPECT_EQ(seen[1], 9);
  // The exporter's end of the memory leaves the importer's.
  EXPECT_EQ(cuMemUnmap(p, 2 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(own), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoH(&seen[1], p + 3 * kPage, 1), CUDA_SUCCESS);
  EXPECT_EQ(seen[1], 9);
  EXPECT_EQ(cuMemUnmap(p + 2 * kPage, 2 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(imported), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(p, 4 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemImportFromShareableHandle(&imported, nullptr, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_ERROR_INVALID_HANDLE)
      << "the standard input is no device memory";
}

// cuda.h, cuMemGetHandleForAddressRange: both ends at host pages, all of it backed.
TEST(DmaBuf, NeedsABackedRangeOfHostPages) {
  Start();
  constexpr CUmemRangeHandleType kType = CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD;
  int file = -1;
  const CUdeviceptr arena = NewArena(2);
  ASSERT_EQ(cuMemGetHandleForAddressRange(&file, arena + 4096, 2 * kPage - 4096, kType, 0), CUDA_SUCCESS);
  EXPECT_EQ(close(file), 0);
  EXPECT_EQ(cuMemGetHandleForAddressRange(&file, arena + 512, 4096, kType, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemGetHandleForAddressRange(&file, arena, 512, kType, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuMemUnmap(arena + kPage, kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemGetHandleForAddressRange(&file, arena, 2 * kPage, kType, 0), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr block = 0;
  ASSERT_EQ(cuMemAlloc(&block, kPage), CUDA_SUCCESS);
  ASSERT_EQ(cuMemGetHandleForAddressRange(&file, block, kPage, kType, 0), CUDA_SUCCESS);
  EXPECT_EQ(close(file), 0);
  EXPECT_EQ(cuMemGetHandleForAddressRange(&file, block, 2 * kPage, kType, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(block), CUDA_SUCCESS);
}

}  // namespace
}  // namespace simgpu_test
