// CudaDeviceMemory on the stub driver's functions, called directly: no preload is involved.
#include "runtime/memory/cuda_device_memory.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/memory/plain_device_memory.h"
#include "tests/preload/stub_driver.h"

namespace hotpack {
namespace {

constexpr uint64_t kChunk = 2 << 20;

class CudaDeviceMemoryTest : public testing::Test {
 protected:
  CudaDeviceMemoryTest() {
    LoadCudaDriver(stub_real, &driver_);
    using Create = CUresult (*)(CUcontext*, unsigned, CUdevice);
    EXPECT_EQ(reinterpret_cast<Create>(stub_real("cuCtxCreate_v2"))(&context_, 0, 0), CUDA_SUCCESS);
  }
  ~CudaDeviceMemoryTest() override {
    using Destroy = CUresult (*)(CUcontext);
    reinterpret_cast<Destroy>(stub_real("cuCtxDestroy_v2"))(context_);
  }
  CUcontext Current() {
    CUcontext context = nullptr;
    driver_.CtxGetCurrent(&context);
    return context;
  }

  CudaDriver driver_;
  CUcontext context_ = nullptr;
};

TEST_F(CudaDeviceMemoryTest, AsksTheDevice) {
  CudaDeviceMemory memory(&driver_, context_, nullptr);
  ASSERT_EQ(memory.Initialize(), MemoryStatus::kOk);
  EXPECT_EQ(memory.ChunkBytes(), kChunk);
  EXPECT_EQ(memory.TotalBytes(), 16ull << 30);
  EXPECT_EQ(memory.DriverCalls(), 0u);
}

// NCCL exports a chunk's handle where it meets an arena without hooks, and fails if it cannot.
TEST_F(CudaDeviceMemoryTest, ChunksCanBeExportedWhereTheDeviceCan) {
  CudaDeviceMemory memory(&driver_, context_, nullptr);
  ASSERT_EQ(memory.Initialize(), MemoryStatus::kOk);
  ChunkHandle chunk = 0;
  EXPECT_EQ(memory.CreateChunk(kChunk, &chunk), MemoryStatus::kOk);
  EXPECT_EQ(stub_handle_types(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  EXPECT_EQ(memory.ReleaseChunk(chunk), MemoryStatus::kOk);
}

TEST_F(CudaDeviceMemoryTest, ADriverThatRefusesHandlesStillGivesMemory) {
  CudaDeviceMemory memory(&driver_, context_, nullptr);
  ASSERT_EQ(memory.Initialize(), MemoryStatus::kOk);
  stub_refuse_handle_types(true);
  ChunkHandle chunk = 0, other = 0;
  EXPECT_EQ(memory.CreateChunk(kChunk, &chunk), MemoryStatus::kOk);
  EXPECT_EQ(memory.CreateChunk(kChunk, &other), MemoryStatus::kOk);
  EXPECT_EQ(stub_handle_types(), CU_MEM_HANDLE_TYPE_NONE);
  EXPECT_EQ(memory.DriverCalls(), 3u) << "one refusal, then chunks without handles";
  stub_refuse_handle_types(false);
  EXPECT_EQ(memory.ReleaseChunk(chunk), MemoryStatus::kOk);
  EXPECT_EQ(memory.ReleaseChunk(other), MemoryStatus::kOk);
}

TEST_F(CudaDeviceMemoryTest, EveryCallIsCountedOnce) {
  CudaDeviceMemory memory(&driver_, context_, nullptr);
  ASSERT_EQ(memory.Initialize(), MemoryStatus::kOk);
  DeviceAddress base = 0;
  ChunkHandle chunk = 0;
  EXPECT_EQ(memory.Reserve(16 * kChunk, &base), MemoryStatus::kOk);
  EXPECT_EQ(memory.CreateChunk(kChunk, &chunk), MemoryStatus::kOk);
  EXPECT_EQ(memory.Map(base, kChunk, chunk), MemoryStatus::kOk);
  EXPECT_EQ(memory.Enable(base, kChunk), MemoryStatus::kOk);
  EXPECT_TRUE(memory.Synchronize());
  EXPECT_EQ(memory.Unmap(base, kChunk), MemoryStatus::kOk);
  EXPECT_EQ(memory.ReleaseChunk(chunk), MemoryStatus::kOk);
  EXPECT_EQ(memory.ReleaseChunk(chunk), MemoryStatus::kFailed);
  EXPECT_EQ(memory.Unreserve(base, 16 * kChunk), MemoryStatus::kOk);
  EXPECT_EQ(memory.DriverCalls(), 9u);
  EXPECT_EQ(stub_chunks(), 0);
}

// The stub's cuMemCreate wants a current context, as growth by a foreign thread's request needs one.
TEST_F(CudaDeviceMemoryTest, WorksOnAThreadWithoutAContextAndLeavesItSo) {
  CudaDeviceMemory memory(&driver_, context_, nullptr);
  ASSERT_EQ(memory.Initialize(), MemoryStatus::kOk);
  std::thread([&] {
    ChunkHandle chunk = 0;
    EXPECT_EQ(Current(), nullptr);
    EXPECT_EQ(memory.CreateChunk(kChunk, &chunk), MemoryStatus::kOk);
    EXPECT_EQ(Current(), nullptr);
    EXPECT_EQ(memory.ReleaseChunk(chunk), MemoryStatus::kOk);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    EXPECT_EQ(driver_.ThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);  // put back
  }).join();
  EXPECT_EQ(Current(), context_);
}

TEST_F(CudaDeviceMemoryTest, ReleaseAllGivesEverythingBack) {
  CudaDeviceMemory memory(&driver_, context_, nullptr);
  ASSERT_EQ(memory.Initialize(), MemoryStatus::kOk);
  DeviceAddress base = 0;
  ASSERT_EQ(memory.Reserve(64 * kChunk, &base), MemoryStatus::kOk);
  // In an order that joins on the left, on the right and on both sides, with a hole cut out of the middle after.
  for (const int i : {0, 1, 5, 3, 4, 2, 9, 20}) {
    ChunkHandle chunk = 0;
    ASSERT_EQ(memory.CreateChunk(kChunk, &chunk), MemoryStatus::kOk);
    ASSERT_EQ(memory.Map(base + i * kChunk, kChunk, chunk), MemoryStatus::kOk);
  }
  ASSERT_EQ(memory.Unmap(base + 2 * kChunk, 2 * kChunk), MemoryStatus::kOk);
  ASSERT_EQ(memory.Unmap(base + 20 * kChunk, kChunk), MemoryStatus::kOk);
  EXPECT_EQ(stub_mapped(), 5);
  EXPECT_EQ(stub_chunks(), 8);
  memory.ReleaseAll(true);
  EXPECT_EQ(stub_mapped(), 0);
  EXPECT_EQ(stub_chunks(), 0);
  EXPECT_EQ(Current(), context_);
}

TEST_F(CudaDeviceMemoryTest, WithoutVirtualMemoryManagement) {
  driver_.MemMap = nullptr;  // an old driver
  CudaDeviceMemory memory(&driver_, context_, nullptr);
  EXPECT_EQ(memory.Initialize(), MemoryStatus::kNotSupported);
  DeviceAddress base = 0;
  ChunkHandle chunk = 0;
  EXPECT_EQ(memory.Reserve(kChunk, &base), MemoryStatus::kNotSupported);
  EXPECT_EQ(memory.CreateChunk(kChunk, &chunk), MemoryStatus::kNotSupported);
  EXPECT_EQ(memory.Map(0, kChunk, 0), MemoryStatus::kNotSupported);
  EXPECT_EQ(memory.DriverCalls(), 0u);
  memory.ReleaseAll(true);
}

TEST_F(CudaDeviceMemoryTest, SynchronizeAsksWhoKnowsTheCaptures) {
  static CUcontext asked = nullptr;
  CudaDeviceMemory memory(&driver_, context_, [](CUcontext context, uint64_t) {
    asked = context;
    return DeviceWait::kNotNow;
  });
  EXPECT_FALSE(memory.Synchronize());
  EXPECT_EQ(memory.SynchronizeWithin(1), DeviceWait::kNotNow);
  EXPECT_EQ(asked, context_);
}

TEST_F(CudaDeviceMemoryTest, PlainIsOneAllocation) {
  PlainDeviceMemory memory(&driver_, context_, nullptr, 256ull << 20);
  ASSERT_EQ(memory.Initialize(), MemoryStatus::kOk);
  EXPECT_TRUE(memory.Fixed());
  EXPECT_EQ(memory.TotalBytes(), 256ull << 20);
  DeviceAddress base = 0, second = 0;
  EXPECT_EQ(memory.Reserve((256ull << 20) + kChunk, &base), MemoryStatus::kOutOfMemory);
  ASSERT_EQ(memory.Reserve(256ull << 20, &base), MemoryStatus::kOk);
  EXPECT_EQ(base % kChunk, 0u);
  EXPECT_EQ(memory.Reserve(64 * kChunk, &second), MemoryStatus::kOutOfMemory);  // there is one
  const uint64_t calls = memory.DriverCalls();
  ChunkHandle chunk = 0;
  EXPECT_EQ(memory.CreateChunk(kChunk, &chunk), MemoryStatus::kOk);
  EXPECT_EQ(memory.Map(base, kChunk, chunk), MemoryStatus::kOk);
  EXPECT_EQ(memory.Enable(base, kChunk), MemoryStatus::kOk);
  EXPECT_EQ(memory.Unmap(base, kChunk), MemoryStatus::kOk);
  EXPECT_EQ(memory.DriverCalls(), calls);
  EXPECT_EQ(memory.Unreserve(base, 256ull << 20), MemoryStatus::kOk);
  EXPECT_EQ(memory.Unreserve(base, 256ull << 20), MemoryStatus::kFailed);
}

TEST_F(CudaDeviceMemoryTest, PlainTakesMostOfWhatIsFree) {
  PlainDeviceMemory memory(&driver_, context_, nullptr, PlainDeviceMemory::kDefault);
  ASSERT_EQ(memory.Initialize(), MemoryStatus::kOk);
  EXPECT_EQ(memory.TotalBytes(), 9ull << 30);  // nine tenths of the stub's 10 GiB
  PlainDeviceMemory tiny(&driver_, context_, nullptr, kChunk);
  EXPECT_EQ(tiny.Initialize(), MemoryStatus::kNotSupported);
}

CUresult RefusePush(CUcontext) { return CUDA_ERROR_INVALID_CONTEXT; }
CUresult RefusePushAtTheEnd(CUcontext) { return CUDA_ERROR_DEINITIALIZED; }

// The context cannot be made current: the driver is asked nothing, because it would answer for another one.
TEST_F(CudaDeviceMemoryTest, WithoutItsContextNoCallIsMade) {
  CudaDeviceMemory memory(&driver_, context_, nullptr);
  PlainDeviceMemory plain(&driver_, context_, nullptr, 256ull << 20);
  ASSERT_EQ(memory.Initialize(), MemoryStatus::kOk);
  ASSERT_EQ(plain.Initialize(), MemoryStatus::kOk);
  DeviceAddress base = 0, at = 0, plain_base = 0;
  ChunkHandle chunk = 0, second = 0;
  ASSERT_EQ(memory.Reserve(16 * kChunk, &base), MemoryStatus::kOk);
  ASSERT_EQ(memory.CreateChunk(kChunk, &chunk), MemoryStatus::kOk);
  ASSERT_EQ(memory.Map(base, kChunk, chunk), MemoryStatus::kOk);
  ASSERT_EQ(plain.Reserve(256ull << 20, &plain_base), MemoryStatus::kOk);
  const uint64_t calls = memory.DriverCalls(), plain_calls = plain.DriverCalls();
  const auto push = driver_.CtxPushCurrent;
  std::thread([&] {
    char byte = 0;
    driver_.CtxPushCurrent = RefusePush;
    EXPECT_EQ(memory.Reserve(kChunk, &at), MemoryStatus::kFailed);
    EXPECT_EQ(memory.CreateChunk(kChunk, &second), MemoryStatus::kFailed);
    EXPECT_EQ(memory.Map(base + kChunk, kChunk, chunk), MemoryStatus::kFailed);
    EXPECT_EQ(memory.Enable(base, kChunk), MemoryStatus::kFailed);
    EXPECT_EQ(memory.Unmap(base, kChunk), MemoryStatus::kFailed);
    EXPECT_EQ(memory.ReleaseChunk(chunk), MemoryStatus::kFailed);
    EXPECT_EQ(memory.Unreserve(base, 16 * kChunk), MemoryStatus::kFailed);
    EXPECT_NE(memory.AllocateManaged(kChunk, &at), MemoryStatus::kOk);
    EXPECT_NE(memory.FreeManaged(base), MemoryStatus::kOk);
    EXPECT_EQ(memory.Fill(base, 1, 0), MemoryStatus::kFailed);
    EXPECT_EQ(memory.Read(base, 1, &byte), MemoryStatus::kFailed);
    EXPECT_EQ(plain.Unreserve(plain_base, 256ull << 20), MemoryStatus::kFailed);
    memory.AddPeer(1);
    EXPECT_FALSE(memory.CopiesReach(1));
    driver_.CtxPushCurrent = RefusePushAtTheEnd;
    EXPECT_EQ(memory.CreateChunk(kChunk, &second), MemoryStatus::kDeinitialized);
    driver_.CtxPushCurrent = push;
  }).join();
  EXPECT_EQ(memory.DriverCalls(), calls);
  EXPECT_EQ(plain.DriverCalls(), plain_calls);
  EXPECT_EQ(plain.Unreserve(plain_base, 256ull << 20), MemoryStatus::kOk) << "it was still held";
  EXPECT_EQ(memory.Unmap(base, kChunk), MemoryStatus::kOk);
  EXPECT_EQ(memory.ReleaseChunk(chunk), MemoryStatus::kOk);
  EXPECT_EQ(stub_chunks(), 0);
  memory.ReleaseAll(true);
}

TEST(MemoryStatusTest, Mapping) {
  EXPECT_EQ(ToMemoryStatus(CUDA_SUCCESS), MemoryStatus::kOk);
  EXPECT_EQ(ToMemoryStatus(CUDA_ERROR_OUT_OF_MEMORY), MemoryStatus::kOutOfMemory);
  EXPECT_EQ(ToMemoryStatus(CUDA_ERROR_NOT_SUPPORTED), MemoryStatus::kNotSupported);
  EXPECT_EQ(ToMemoryStatus(CUDA_ERROR_DEINITIALIZED), MemoryStatus::kDeinitialized);
  EXPECT_EQ(ToMemoryStatus(CUDA_ERROR_ILLEGAL_ADDRESS), MemoryStatus::kFailed);
}

// The arguments of cuMemSetAccess and cuMemCreate.
struct Told {
  struct Access {
    DeviceAddress address;
    uint64_t bytes;
    std::vector<int> devices;
  };
  std::vector<Access> access;
  int rdma_chunks = 0, other_chunks = 0, refuse_device = -1;
  bool refuse_rdma = false;
};
Told told;

CUresult SetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* descriptions, size_t count) {
  Told::Access access{address, bytes, {}};
  for (size_t i = 0; i < count; ++i) access.devices.push_back(descriptions[i].location.id);
  told.access.push_back(access);
  for (int device : access.devices) {
    if (device == told.refuse_device) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult Create(CUmemGenericAllocationHandle* handle, size_t, const CUmemAllocationProp* prop, unsigned long long) {
  static CUmemGenericAllocationHandle last = 1000;
  const bool rdma = prop->allocFlags.gpuDirectRDMACapable != 0;
  if (rdma && told.refuse_rdma) return CUDA_ERROR_INVALID_VALUE;
  ++(rdma ? told.rdma_chunks : told.other_chunks);
  *handle = ++last;
  return CUDA_SUCCESS;
}

TEST_F(CudaDeviceMemoryTest, PeersHaveAccessToWhatIsAndWhatComes) {
  told = {};
  driver_.MemSetAccess = SetAccess;
  CudaDeviceMemory memory(&driver_, context_, nullptr);
  ASSERT_EQ(memory.Initialize(), MemoryStatus::kOk);
  DeviceAddress base = 0;
  ChunkHandle chunks[4] = {};
  ASSERT_EQ(memory.Reserve(16 * kChunk, &base), MemoryStatus::kOk);
  auto map = [&](int i) {
    ASSERT_EQ(memory.CreateChunk(kChunk, &chunks[i]), MemoryStatus::kOk);
    ASSERT_EQ(memory.Map(base + i * kChunk, kChunk, chunks[i]), MemoryStatus::kOk);
    ASSERT_EQ(memory.Enable(base + i * kChunk, kChunk), MemoryStatus::kOk);
  };
  map(0);
  map(1);
  map(3);
  EXPECT_EQ(told.access.back().devices, std::vector<int>{0});
  told.access.clear();
  memory.AddPeer(0);  // itself
  EXPECT_TRUE(told.access.empty());
  memory.AddPeer(1);
  memory.AddPeer(1);
  ASSERT_EQ(told.access.size(), 2u);
  EXPECT_EQ(told.access[0].address, base);
  EXPECT_EQ(told.access[0].bytes, 2 * kChunk);
  EXPECT_EQ(told.access[1].address, base + 3 * kChunk);
  EXPECT_EQ(told.access[1].devices, std::vector<int>{1});
  map(2);
  EXPECT_EQ(told.access.back().devices, (std::vector<int>{0, 1}));
  told.refuse_device = 1;  // the memory is there all the same
  told.access.clear();
  ASSERT_EQ(memory.Enable(base, kChunk), MemoryStatus::kOk);
  EXPECT_EQ(told.access.back().devices, std::vector<int>{0});
  memory.ReleaseAll(true);
}

TEST_F(CudaDeviceMemoryTest, ChunksAreMadeForRdmaWhereThatIsPossible) {
  told = {};
  driver_.MemCreate = Create;
  CudaDeviceMemory memory(&driver_, context_, nullptr);
  ASSERT_EQ(memory.Initialize(), MemoryStatus::kOk);
  ChunkHandle chunk = 0;
  ASSERT_EQ(memory.CreateChunk(kChunk, &chunk), MemoryStatus::kOk);
  EXPECT_EQ(told.rdma_chunks, 1);
  told.refuse_rdma = true;
  ASSERT_EQ(memory.CreateChunk(kChunk, &chunk), MemoryStatus::kOk);
  ASSERT_EQ(memory.CreateChunk(kChunk, &chunk), MemoryStatus::kOk);
  EXPECT_EQ(told.rdma_chunks, 1);
  EXPECT_EQ(told.other_chunks, 2);
}

}  // namespace
}  // namespace hotpack
