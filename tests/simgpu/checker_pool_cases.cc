// Memory of a program's own pool. See checker_cases.h.
#include "tests/simgpu/checker_cases.h"

namespace simgpu_test {
namespace {

CUmemoryPool NewPool() {
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemoryPool pool = nullptr;
  MUST(cuMemPoolCreate(&pool, &props));
  return pool;
}

CUdeviceptr Allocate(CUmemoryPool pool, CUstream stream) {
  CUdeviceptr p = 0;
  MUST(cuMemAllocFromPoolAsync(&p, 4096, pool, stream));
  return p;
}

// A block of the pool, used and released on s1.
CUdeviceptr UsedOnceFrom(CUmemoryPool pool) {
  const CUdeviceptr p = Allocate(pool, s1);
  Touch(s1, p);
  MUST(cuMemFreeAsync(p, s1));
  return p;
}

}  // namespace

CASE(OwnPoolSameStream) {
  const CUmemoryPool pool = NewPool();
  const CUdeviceptr p = UsedOnceFrom(pool);
  if (Allocate(pool, s1) != p) exit(3);
  Touch(s1, p);
}
// The pool makes the other stream wait.
CASE(OwnPoolOtherStream) {
  const CUmemoryPool pool = NewPool();
  const CUdeviceptr p = UsedOnceFrom(pool);
  if (Allocate(pool, s2) != p) exit(3);
  Touch(s2, p);
}
// It waits for the stream that released the block, not for a third one that used it.
CASE(OwnPoolThirdStream) {
  const CUmemoryPool pool = NewPool();
  const CUdeviceptr p = Allocate(pool, s1);
  const CUstream third = NewStream();
  EventEdge(s1, third);
  Touch(third, p);
  MUST(cuMemFreeAsync(p, s1));
  if (Allocate(pool, s1) != p) exit(3);
  Touch(s1, p);
}
CASE(OwnPoolUseAfterFree) {
  const CUdeviceptr p = UsedOnceFrom(NewPool());
  Touch(s1, p);
}
// Neither gives the host an order: the release on s1 may still run.
CASE(OwnPoolTrimIsNoOrder) {
  UsedOnce();
  const CUmemoryPool pool = NewPool();
  UsedOnceFrom(pool);
  MUST(cuMemPoolTrimTo(pool, 0));
  Give(arena, 8192);
  Touch(s2, arena);
}
CASE(OwnPoolDestroyIsNoOrder) {
  UsedOnce();
  const CUmemoryPool pool = NewPool();
  UsedOnceFrom(pool);
  MUST(cuMemPoolDestroy(pool));
  Give(arena, 8192);
  Touch(s2, arena);
}

}  // namespace simgpu_test
