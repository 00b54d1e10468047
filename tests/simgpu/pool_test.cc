// A program's own memory pools: the block of each request, and when the device gets its memory back (cuda.h,
// cuMemPool…).
#include <gtest/gtest.h>

#include "tests/simgpu/support.h"

namespace simgpu_test {
namespace {

const int kDevices = setenv("SIMGPU_DEVICES", "2", 1);

constexpr CUmemPool_attribute kFollow = CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES;
constexpr CUmemPool_attribute kOpportunistic = CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC;
constexpr CUmemPool_attribute kInternal = CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;

class PoolTest : public testing::Test {
 protected:
  void SetUp() override {
    Start();
    s_ = NewStream();
    t_ = NewStream();
  }
  static CUmemPoolProps Props(int device = 0) {
    CUmemPoolProps props = {};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    return props;
  }
  static CUmemoryPool NewPool(const CUmemPoolProps& props = Props()) {
    CUmemoryPool pool = nullptr;
    MUST(cuMemPoolCreate(&pool, &props));
    return pool;
  }
  static void Set(CUmemoryPool pool, CUmemPool_attribute attribute, int value) {
    EXPECT_EQ(cuMemPoolSetAttribute(pool, attribute, &value), CUDA_SUCCESS);
  }
  static void Keep(CUmemoryPool pool, uint64_t bytes) {
    EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes), CUDA_SUCCESS);
  }
  static CUdeviceptr Allocate(CUmemoryPool pool, CUstream stream, uint64_t bytes = kPage) {
    CUdeviceptr p = 0;
    EXPECT_EQ(cuMemAllocFromPoolAsync(&p, bytes, pool, stream), CUDA_SUCCESS);
    return p;
  }
  static uint64_t Get(CUmemoryPool pool, CUmemPool_attribute attribute) {
    uint64_t value = 0;
    EXPECT_EQ(cuMemPoolGetAttribute(pool, attribute, &value), CUDA_SUCCESS);
    return value;
  }
  static uint64_t Reserved(CUmemoryPool pool) { return Get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT); }
  static uint64_t Free() {
    size_t free = 0, total = 0;
    EXPECT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    return free;
  }
  // A block released on s_ is given to t_.
  bool OtherStreamGets(CUmemoryPool pool) {
    const CUdeviceptr p = Allocate(pool, s_);
    EXPECT_EQ(cuMemFreeAsync(p, s_), CUDA_SUCCESS);
    if (edge_) {
      const CUevent event = NewEvent();
      EXPECT_EQ(cuEventRecord(event, s_), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamWaitEvent(t_, event, 0), CUDA_SUCCESS);
    }
    if (sync_) {
      EXPECT_EQ(cuStreamSynchronize(s_), CUDA_SUCCESS);
    }
    const CUdeviceptr q = Allocate(pool, t_);
    EXPECT_EQ(cuMemFreeAsync(q, t_), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
    EXPECT_EQ(Reserved(pool), 0u);
    return q == p;
  }
  CUstream s_ = nullptr, t_ = nullptr;
  bool edge_ = false, sync_ = false;  // what OtherStreamGets does between the release and the allocation
};

TEST_F(PoolTest, RefusesWhatCannotBe) {
  CUmemoryPool pool = nullptr;
  CUmemPoolProps props = Props();
  EXPECT_EQ(cuMemPoolCreate(nullptr, &props), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPoolCreate(&pool, nullptr), CUDA_ERROR_INVALID_VALUE);
  props.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
  EXPECT_EQ(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
  props = Props(2);
  EXPECT_EQ(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_DEVICE);
  ASSERT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(PoolTest, ReusesByDefaultInEveryWay) {
  const CUmemoryPool pool = NewPool();
  for (const CUmemPool_attribute attribute : {kFollow, kOpportunistic, kInternal}) {
    int value = 0;
    EXPECT_EQ(cuMemPoolGetAttribute(pool, attribute, &value), CUDA_SUCCESS);
    EXPECT_EQ(value, 1);
  }
  EXPECT_EQ(Get(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0u);
  EXPECT_TRUE(OtherStreamGets(pool));
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
}

TEST_F(PoolTest, GivesAnotherStreamWhatItsAttributesAllow) {
  const CUmemoryPool pool = NewPool();
  Keep(pool, 1 << 30);
  for (const CUmemPool_attribute attribute : {kFollow, kOpportunistic, kInternal}) Set(pool, attribute, 0);
  EXPECT_FALSE(OtherStreamGets(pool));
  Set(pool, kInternal, 1);
  EXPECT_TRUE(OtherStreamGets(pool));
  Set(pool, kInternal, 0);
  edge_ = true;
  EXPECT_FALSE(OtherStreamGets(pool));
  Set(pool, kFollow, 1);
  EXPECT_TRUE(OtherStreamGets(pool));
  edge_ = false;
  EXPECT_FALSE(OtherStreamGets(pool));
  Set(pool, kFollow, 0);
  sync_ = true;
  EXPECT_FALSE(OtherStreamGets(pool));
  Set(pool, kOpportunistic, 1);
  EXPECT_TRUE(OtherStreamGets(pool));
  sync_ = false;
  EXPECT_FALSE(OtherStreamGets(pool));
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
}

TEST_F(PoolTest, ItsOwnStreamAlwaysReuses) {
  const CUmemoryPool pool = NewPool();
  for (const CUmemPool_attribute attribute : {kFollow, kOpportunistic, kInternal}) Set(pool, attribute, 0);
  const CUdeviceptr p = Allocate(pool, s_);
  EXPECT_EQ(cuMemFreeAsync(p, s_), CUDA_SUCCESS);
  EXPECT_EQ(Allocate(pool, s_), p);
  EXPECT_EQ(cuMemFreeAsync(p, s_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
}

TEST_F(PoolTest, TrimsWhatTheHostKnowsToBeFree) {
  const uint64_t before = Free();
  const CUmemoryPool pool = NewPool();
  Keep(pool, 1 << 30);
  const CUdeviceptr p = Allocate(pool, s_), q = Allocate(pool, s_), live = Allocate(pool, s_);
  EXPECT_EQ(cuMemFreeAsync(p, s_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(q, s_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(Reserved(pool), 3 * kPage) << "the releases may still run";
  EXPECT_EQ(cuStreamSynchronize(s_), CUDA_SUCCESS);
  EXPECT_EQ(Reserved(pool), 3 * kPage) << "kept, as the threshold asks";
  EXPECT_EQ(cuMemPoolTrimTo(pool, 2 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(Reserved(pool), 2 * kPage);
  EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(Reserved(pool), kPage);
  EXPECT_EQ(Free(), before - kPage);
  Keep(pool, 0);
  EXPECT_EQ(cuMemFreeAsync(live, s_), CUDA_SUCCESS);
  EXPECT_EQ(Free(), before - kPage);
  EXPECT_EQ(cuStreamSynchronize(s_), CUDA_SUCCESS);
  EXPECT_EQ(Free(), before);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
}

// The pool ends with its last block.
TEST_F(PoolTest, OutlivesItsDestructionWithItsBlocks) {
  const uint64_t before = Free();
  const CUmemoryPool pool = NewPool();
  const CUdeviceptr live = Allocate(pool, s_), freed = Allocate(pool, s_);
  EXPECT_EQ(cuMemFreeAsync(freed, s_), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceSetMemPool(0, pool), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
  CUdeviceptr p = 0;
  CUmemoryPool current = nullptr, standard = nullptr;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&p, kPage, pool, s_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuDeviceGetMemPool(&current, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetDefaultMemPool(&standard, 0), CUDA_SUCCESS);
  EXPECT_EQ(current, standard);
  EXPECT_EQ(Free(), before - 2 * kPage) << "the release may still run";
  EXPECT_EQ(cuStreamSynchronize(s_), CUDA_SUCCESS);
  EXPECT_EQ(Free(), before - kPage);
  EXPECT_EQ(cuMemsetD8Async(live, 1, kPage, s_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(live, s_), CUDA_SUCCESS);
  EXPECT_EQ(Reserved(standard), 0u) << "its blocks go to no other pool";
  EXPECT_EQ(cuStreamSynchronize(s_), CUDA_SUCCESS);
  EXPECT_EQ(Free(), before);
}

TEST_F(PoolTest, GrowsToItsMaximum) {
  CUmemPoolProps props = Props();
  props.maxSize = 2 * kPage;
  const CUmemoryPool pool = NewPool(props);
  Keep(pool, 1 << 30);
  const CUdeviceptr p = Allocate(pool, s_);
  CUdeviceptr large = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&large, 2 * kPage, pool, s_), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&large, 3 * kPage, pool, s_), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemFreeAsync(p, s_), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(s_), CUDA_SUCCESS);
  EXPECT_EQ(Reserved(pool), kPage);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&large, 2 * kPage, pool, s_), CUDA_SUCCESS) << "what it kept makes room";
  EXPECT_EQ(Reserved(pool), 2 * kPage);
  EXPECT_EQ(cuMemFreeAsync(large, s_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

// "The specified memory pool may be from a device different than that of the specified hStream."
TEST_F(PoolTest, GivesMemoryOfItsOwnDevice) {
  const uint64_t before = Free();
  const CUmemoryPool pool = NewPool(Props(1));
  const CUdeviceptr p = Allocate(pool, s_);
  int device = -1;
  EXPECT_EQ(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p), CUDA_SUCCESS);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(Free(), before);
  EXPECT_EQ(cuMemFreeAsync(p, s_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
}

}  // namespace
}  // namespace simgpu_test
